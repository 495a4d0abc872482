"""relplot: the smooth ECE, of the authors who proposed it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from torch import Tensor

__all__ = ["smooth_ece"]


def smooth_ece(probs: Tensor, targets: Tensor) -> Callable[[], float]:
    """Its smECE, from probabilities; it takes NumPy arrays."""
    module, p, y = import_module("relplot.metrics"), probs.numpy(), targets.numpy()
    return lambda: float(module.smECE(*module.multiclass_logits_to_confidences(p, y, probs=True)))
