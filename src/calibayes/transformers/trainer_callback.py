"""Tell a posterior about the steps and epochs of a ``Trainer``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, final

from transformers import TrainerCallback

from calibayes.training.framework_run import FrameworkRun

__all__ = ["TrainerPosteriorCallback"]


@final
class TrainerPosteriorCallback(TrainerCallback):  # type: ignore[misc]
    """Calls a run after every optimiser step and every epoch, before anything is evaluated or written.

    Args:
        begin: called with the number of epochs when a training begins; returns its run.
        finish: called with the run when the training ends.
    """

    def __init__(self, begin: Callable[[int], FrameworkRun], finish: Callable[[FrameworkRun], None]) -> None:
        self._begin, self._finish = begin, finish
        self._run: FrameworkRun | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Begin a run."""
        # Of a stream that only `max_steps` ends, transformers says that it has no end of epochs.
        epochs = int(state.num_train_epochs)
        self._run = self._begin(1 if epochs >= sys.maxsize else epochs)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Tell of the step, and of the epoch if this was its last: a checkpoint may be written now."""
        assert self._run is not None
        epoch = math.ceil(state.epoch)
        self._run.after_step(epoch)
        if state.epoch == epoch:
            self._run.after_epoch(epoch)

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """End the run; the best weights have been loaded already, if they were asked for."""
        assert self._run is not None
        self._finish(self._run)
