"""Learning-rate schedulers: made by a factory, and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from calibayes.errors import InvalidArgumentError

__all__ = ["SchedulerFactory", "made_scheduler"]

SchedulerFactory = Callable[[Any], LRScheduler]

_FACTORY = "Expected `scheduler` to be a factory that returns a torch.optim.lr_scheduler.LRScheduler"
_EXAMPLE = "Example: `lambda optimizer: CosineAnnealingLR(optimizer, 10)`."


def made_scheduler(
    factory: SchedulerFactory | None, optimizer: torch.optim.Optimizer, interval: Literal["epoch", "step"]
) -> LRScheduler | None:
    """Return the scheduler that a factory makes for an optimiser, or raise an error that says what is wrong with it."""
    if interval not in ("epoch", "step"):
        raise InvalidArgumentError(f"Expected `scheduler_interval` to be 'epoch' or 'step', but got {interval!r}.")
    if factory is None:
        return None
    if not callable(factory):
        raise InvalidArgumentError(f"{_FACTORY}, but got {factory!r}. {_EXAMPLE}")
    try:
        made = factory(optimizer)
    except TypeError as error:
        raise InvalidArgumentError(
            f"`scheduler={factory!r}` cannot be called with the optimiser: {error}. {_EXAMPLE}"
        ) from error
    if not isinstance(made, LRScheduler):
        raise InvalidArgumentError(f"{_FACTORY}, but it returned {made!r}. {_EXAMPLE}")
    if made.optimizer is not optimizer:
        raise InvalidArgumentError(
            f"`scheduler` returned a {type(made).__name__} of another optimiser than the one it was given. {_EXAMPLE}"
        )
    if isinstance(made, ReduceLROnPlateau) and interval == "step":
        raise InvalidArgumentError("ReduceLROnPlateau looks at a metric of the epoch. Use `scheduler_interval='epoch'`.")
    return made
