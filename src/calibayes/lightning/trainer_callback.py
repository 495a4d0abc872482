"""Tell a posterior about the steps and epochs of a Trainer."""

from __future__ import annotations

import math
from typing import Any, final

from lightning.pytorch import Callback

from calibayes.training.training_hooks import TrainingHooks

__all__ = ["LightningPosteriorCallback", "planned_epochs"]

_ENDLESS = 1000  # epochs of a Trainer without an end: Lightning's own default


@final
class LightningPosteriorCallback(Callback):  # type: ignore[misc]
    """Calls the hooks of a training after every optimiser step and every epoch.

    It is a callback, and not a hook of the module, since Lightning writes checkpoints after all other callbacks, but before it
    calls the module: a checkpoint must have the changes that the posterior makes after the last step of an epoch.
    """

    def __init__(self) -> None:
        self.hooks: TrainingHooks | None = None
        self._steps = 0

    def on_train_batch_start(self, trainer: Any, *others: Any) -> None:
        """Remember how many steps there were."""
        self._steps = trainer.global_step

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Report the step, unless gradients are still accumulated; and the epoch, if this was its last batch."""
        assert self.hooks is not None
        epoch = trainer.current_epoch + 1
        if trainer.global_step > self._steps:
            self.hooks.after_step(epoch)
        if trainer.is_last_batch or batch_idx + 1 >= trainer.num_training_batches:
            self.hooks.after_epoch(epoch)


def planned_epochs(trainer: Any) -> int:
    """Return the largest number of epochs of a Trainer; a stream that only ``max_steps`` ends counts as one."""
    batches: float = trainer.num_training_batches
    stream = math.isinf(batches)
    epochs: int = trainer.max_epochs
    if epochs in (None, -1):
        epochs = 1 if stream else _ENDLESS
    if stream or trainer.max_steps == -1:
        return epochs
    steps = math.ceil(batches / int(trainer.accumulate_grad_batches))
    return max(1, min(epochs, math.ceil(int(trainer.max_steps) / steps)))
