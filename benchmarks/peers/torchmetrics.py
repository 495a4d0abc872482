"""torchmetrics: the ECE."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from torch import Tensor

__all__ = ["ece"]


def ece(probs: Tensor, targets: Tensor) -> Callable[[], float]:
    """Its functional form, with 15 bins."""
    error = import_module("torchmetrics.functional.classification").multiclass_calibration_error
    return lambda: float(error(probs, targets, num_classes=probs.shape[1], n_bins=15))
