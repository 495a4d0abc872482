"""Tables, texts and images in files: `train` a model on them, `load` it, and predict others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibayes.files.model import Model, load
from calibayes.files.predicting import predict_file
from calibayes.files.settings import DataSettings, TrainSettings
from calibayes.files.training import Trained, train

if TYPE_CHECKING:
    from calibayes.files.task import file_task

__all__ = ["DataSettings", "Model", "TrainSettings", "Trained", "file_task", "load", "predict_file", "train"]


def __getattr__(name: str) -> Any:
    if name == "file_task":  # only this needs the comparison
        from calibayes.files.task import file_task

        return file_task
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
