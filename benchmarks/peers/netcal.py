"""netcal: MMCE as a penalty in training, over all pairs, and the ECE."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from torch import Tensor

__all__ = ["ece", "penalty"]


def penalty() -> Callable[[Tensor, Tensor], Tensor]:
    """Its MMCEPenalty, a function of logits and targets."""
    made: Callable[[Tensor, Tensor], Tensor] = import_module("netcal.regularization").MMCEPenalty(weight=1.0)
    return made


def ece(probs: Tensor, targets: Tensor) -> Callable[[], float]:
    """Its ECE of 15 bins; it takes NumPy arrays."""
    metric, p, y = import_module("netcal.metrics").ECE(bins=15), probs.numpy(), targets.numpy()
    return lambda: float(metric.measure(p, y))
