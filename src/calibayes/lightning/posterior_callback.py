"""Tell a posterior about the steps and epochs of a Trainer."""

from __future__ import annotations

from typing import Any, final

from lightning.pytorch import Callback

from calibayes.training.framework_run import FrameworkRun

__all__ = ["LightningPosteriorCallback"]


@final
class LightningPosteriorCallback(Callback):  # type: ignore[misc]
    """Calls a run after every optimiser step and every epoch.

    It is a callback, and not a hook of the module, since Lightning calls those that write checkpoints after all other
    callbacks, but before the module: what the posterior makes of the last step of an epoch must be in a checkpoint of it.
    """

    def __init__(self) -> None:
        self.run: FrameworkRun | None = None
        self._steps = 0

    def on_train_batch_start(self, trainer: Any, *others: Any) -> None:
        """Note how many steps there were."""
        self._steps = trainer.global_step

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Tell of the step, unless gradients are accumulated still; and of the epoch, if this was its last batch."""
        assert self.run is not None
        epoch = trainer.current_epoch + 1
        if trainer.global_step > self._steps:
            self.run.after_step(epoch)
        if trainer.is_last_batch or batch_idx + 1 >= trainer.num_training_batches:
            self.run.after_epoch(epoch)
