"""Tables, texts and images in files: `train` on them, `load` a model, and let it predict others."""

from __future__ import annotations

from calibayes.files.model import Model, load
from calibayes.files.predicting import predict_file
from calibayes.files.settings import DataSettings, TrainSettings
from calibayes.files.task import file_task
from calibayes.files.training import Trained, train

__all__ = ["DataSettings", "Model", "TrainSettings", "Trained", "file_task", "load", "predict_file", "train"]
