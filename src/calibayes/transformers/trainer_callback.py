"""Tell a posterior about the steps and epochs of a ``Trainer``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, final

from transformers import TrainerCallback

from calibayes.training.training_hooks import TrainingHooks

__all__ = ["TrainerPosteriorCallback"]


@final
class TrainerPosteriorCallback(TrainerCallback):  # type: ignore[misc]
    """Calls the hooks of a training after every optimiser step and every epoch, before anything is evaluated or written.

    Args:
        begin: called with the number of epochs when a training begins; returns its hooks.
        finish: called when the training ends; the best weights have been loaded by then, if that was asked for.
    """

    def __init__(self, begin: Callable[[int], TrainingHooks], finish: Callable[[], None]) -> None:
        self._begin, self._finish = begin, finish
        self._hooks: TrainingHooks | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Begin a training."""
        # transformers gives a stream that only `max_steps` ends the largest number of epochs.
        epochs = int(state.num_train_epochs)
        self._hooks = self._begin(1 if epochs >= sys.maxsize else epochs)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Report the step, and the epoch if this was its last: a checkpoint may be written next."""
        assert self._hooks is not None
        epoch = math.ceil(state.epoch)
        self._hooks.after_step(epoch)
        if state.epoch == epoch:
            self._hooks.after_epoch(epoch)

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """End the training."""
        self._finish()
