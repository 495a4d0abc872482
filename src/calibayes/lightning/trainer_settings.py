"""The length of the training that a Trainer's settings describe."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["planned_epochs"]

_ENDLESS = 1000  # epochs of a Trainer without an end: what Lightning itself takes where it is told nothing


def planned_epochs(trainer: Any) -> int:
    """Return the largest number of epochs; a stream that only ``max_steps`` ends is one."""
    batches: float = trainer.num_training_batches
    stream = math.isinf(batches)
    epochs: int = trainer.max_epochs
    if epochs in (None, -1):
        epochs = 1 if stream else _ENDLESS
    if stream or trainer.max_steps == -1:
        return epochs
    steps = math.ceil(batches / int(trainer.accumulate_grad_batches))
    return max(1, min(epochs, math.ceil(int(trainer.max_steps) / steps)))
