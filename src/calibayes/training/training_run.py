"""The training loop of `calibayes.fit`."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Event
from typing import Literal

from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from calibayes.checkpoint import CheckpointFolder
from calibayes.data.sources import Batch, Source
from calibayes.terminal import ProgressDisplay, progress_console
from calibayes.training.early_stopping import BestEpoch
from calibayes.training.epoch_metrics import OnEpoch, call_on_epoch, validation_metrics
from calibayes.training.history import History
from calibayes.training.interrupt import interruptible
from calibayes.training.micro_batches import TrainingPosition
from calibayes.training.resuming import resume, save_run
from calibayes.training.stacked_members import MembersSource, TogetherStepper
from calibayes.training.step import Stepper
from calibayes.training.training_hooks import TrainingHooks
from calibayes.training.training_inputs import on_device
from calibayes.training.training_progress import TrainingProgress
from calibayes.training.weight_averaging import Averaging
from calibayes.training.weight_checks import check_alike, check_weights

__all__ = ["TrainingRun"]


@dataclass
class TrainingRun:
    """A training run: its parts, and the position it has reached."""

    stepper: Stepper | TogetherStepper
    train: Source | MembersSource
    epochs: int
    scheduler: LRScheduler | None
    scheduler_interval: Literal["epoch", "step"]
    validation: Source | None
    validation_samples: int
    calibration_data: Source | None
    out_of_domain: Source | None
    best: BestEpoch | None
    averaging: Averaging | None
    folder: CheckpointFolder | None
    checkpoint_seconds: float
    on_epoch: OnEpoch | None
    progress: bool | None

    def __post_init__(self) -> None:
        self.history = History()
        self.epoch = self.batch = self.step = self.first_step = 0
        self.ending: Literal["early", "callback"] | None = None  # why training ends before the last epoch
        self.spent = 0.0  # seconds in this epoch
        self._saved_at = time.monotonic()
        self._posterior, self._processes, settings = self.stepper.posterior, self.stepper.processes, self.stepper.settings
        self._seed = settings.seed
        self.hooks = TrainingHooks(
            self._posterior, self.averaging, lambda: self.train, settings.seed, settings.micro_batch_size
        )

    def go(self) -> History:
        """Train from the newest checkpoint, if there is one, until the last epoch, early stopping, or Ctrl-C."""
        self._processes.copy_from_first_([*self._posterior.parameters(), *self._posterior.buffers()])
        self.hooks.begin(self.epochs)
        resume(self)
        self._posterior.train()
        try:
            self._run_epochs()
            if self.best is not None:
                self.history.best_epoch = self.best.restore(self._posterior)
            self.hooks.finish(keep_weights=self.best is not None and self.best.epoch is not None)
        finally:
            self._posterior.eval()
        return self.history

    def _run_epochs(self) -> None:
        console = progress_console(self.progress if self._processes.first else False)
        with interruptible() as interrupt, ProgressDisplay(console) as display:
            progress = TrainingProgress(display, self.train.steps() * self.epochs, self.epochs)
            while self.epoch < self.epochs and self.ending is None and not self._interrupted(interrupt):
                if self._run_epoch(interrupt, progress):
                    self._end_epoch(progress)
            if self._interrupted(interrupt):
                self.history.stopped = "interrupted"
                progress.note(f"Interrupted after step {self.step}: what was learned until then is kept.")
                self._save()
            else:
                self.history.stopped = self.ending or "finished"

    def _run_epoch(self, interrupt: Event, progress: TrainingProgress) -> bool:
        """Train on the batches of this epoch that are left; returns True at its end."""
        started = time.monotonic()
        for batch in self.train.epoch(self._seed, self.epoch, self.batch, processes=self._processes):
            place = TrainingPosition(self.epoch, self.batch, self.step)
            self.stepper.stop = interrupt.is_set()
            held_out = self._drawn(self.calibration_data, "held-out", batch.total, place)
            outside = self._drawn(self.out_of_domain, "out-of-domain", batch.total, place)
            terms = self.stepper.step(on_device(batch, self._posterior.device), held_out, place, outside)
            self.history.steps.append(terms)
            self.batch += 1
            self.step += 1
            self.hooks.after_step(self.epoch + 1)
            if self.scheduler is not None and self.scheduler_interval == "step":
                self.scheduler.step()
            progress.update(self.epoch + 1, self.step, terms)
            if self._interrupted(interrupt):
                break
            if time.monotonic() - self._saved_at >= self.checkpoint_seconds:
                self.spent, started = self.spent + time.monotonic() - started, time.monotonic()
                self._save()
        self.spent += time.monotonic() - started
        return self.batch >= self.train.steps()

    def _interrupted(self, interrupt: Event) -> bool:
        """Return True if training should stop; several processes stop after the same step, on which they agree."""
        return interrupt.is_set() if self._processes.size == 1 else self.stepper.stop

    def _drawn(self, source: Source | None, stream: str, count: int, place: TrainingPosition) -> Batch | None:
        if source is None:
            return None
        drawn = source.draw(count, self._seed, stream, place.epoch, place.batch, processes=self._processes)
        return on_device(drawn, self._posterior.device)

    def _end_epoch(self, progress: TrainingProgress) -> None:
        check_weights(self._posterior, self.epoch + 1, self.step)
        self.hooks.after_epoch(self.epoch + 1)
        if self.hooks.average is not None:
            check_alike(self._posterior, self._processes, self.epoch + 1)
        watched = self.validation is not None or self.on_epoch is not None
        with self.hooks.averaged() if watched else nullcontext():
            row = self._epoch_row()
        self.epoch, self.batch, self.first_step, self.spent = self.epoch + 1, 0, self.step, 0.0
        if self.scheduler is not None and self.scheduler_interval == "epoch":
            if isinstance(self.scheduler, ReduceLROnPlateau):
                self.scheduler.step(row.get("val_nll", row["total"]))
            else:
                self.scheduler.step()
        shown = [f"{name[4:]} {value:.4f}" for name, value in row.items() if name.startswith("val_")]
        progress.note(f"epoch {self.epoch}/{self.epochs}  loss {row['total']:.4f}  " + "  ".join(shown))
        self._save()

    def _epoch_row(self) -> dict[str, float]:
        """Validate the posterior, call the caller's function, and decide on early stopping; returns the history's row."""
        numbers = {"lr": float(self.stepper.optimizer.param_groups[0]["lr"])}
        if self.validation is not None:
            refined = self.best is not None and self.best.rule.monitor == "refined-nll"
            samples, seed, processes = self.validation_samples, self._seed, self._processes
            numbers |= validation_metrics(
                self._posterior, self.validation, samples=samples, seed=seed, processes=processes, refined=refined
            )
        returned, stop = call_on_epoch(self.on_epoch, self._posterior, self.epoch + 1)
        check_alike(self._posterior, self._processes, self.epoch + 1)
        # The numbers of the first process decide for all: a last digit that differs must not make them stop apart.
        numbers, stop = self._processes.from_first(lambda: ({**numbers, **returned}, stop))
        row = self.history.end_epoch(self.first_step, numbers, self.spent)
        settled = all(member.settled for member in self._posterior.members)
        if self.best is not None and settled and self.best.update(self._posterior, row):
            self.ending = "early"
        if stop:
            self.ending = "callback"
        return row

    def _save(self) -> None:
        check_weights(self._posterior, self.epoch + 1, self.step)
        save_run(self)
        self._saved_at = time.monotonic()
