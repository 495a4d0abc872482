"""The training loop, and the state from which it can be taken up again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from calibayes.checkpoint import CheckpointFolder
from calibayes.data.sources import Batch, Source
from calibayes.errors import CheckpointError
from calibayes.posterior import Posterior
from calibayes.terminal import ProgressDisplay, progress_console
from calibayes.training.data_terms import TrainingPosition
from calibayes.training.early_stopping import BestEpoch
from calibayes.training.epoch_callback import OnEpoch, called
from calibayes.training.history import History
from calibayes.training.interrupt import Interrupt, interruptible
from calibayes.training.norm_statistics import exchange_buffers, member_norm_statistics, replaced_buffers
from calibayes.training.stacked_members import TogetherStepper
from calibayes.training.step import Stepper
from calibayes.training.training_device import on_device
from calibayes.training.training_progress import TrainingProgress
from calibayes.training.validation import validation_metrics
from calibayes.training.weight_averaging import Averaging, WeightAverage
from calibayes.training.weight_checks import check_alike, check_weights

__all__ = ["TrainingRun"]


@dataclass
class TrainingRun:
    """A training run: what it works on, and where it is."""

    stepper: Stepper | TogetherStepper
    train: Source
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
        self.ending: Literal["early", "callback"] | None = None  # before the last epoch, and why
        self.average: WeightAverage | None = None
        self._spent = 0.0
        self._saved_at = time.monotonic()

    @property
    def seed(self) -> int:
        """The seed of shuffling and noise."""
        return self.stepper.settings.seed

    def resume(self) -> None:
        """Go to where the newest checkpoint is, if there is one."""
        folder = self.folder
        processes, posterior = self.stepper.processes, self.stepper.posterior
        processes.copy_from_first_([*posterior.parameters(), *posterior.buffers()])
        posterior.begin(self.epochs)
        if self.averaging is not None:
            self.average = WeightAverage(self.averaging, posterior, self._norm_statistics)
        state = None if folder is None else processes.from_first(folder.newest)
        if state is None:
            return
        done = state["place"][0]
        if done > self.epochs:
            raise CheckpointError(
                f"The checkpoint has {done} epochs behind it, more than `epochs={self.epochs}`. "
                "Use another folder, or more epochs."
            )
        try:
            self._load(state)
        except (RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"The checkpoint does not fit this run: {error}") from error

    def go(self) -> History:
        """Train until the last epoch, early stopping, or Ctrl-C."""
        posterior = self.stepper.posterior
        try:
            return self._go(posterior)
        finally:
            posterior.eval()

    def _go(self, posterior: Posterior) -> History:
        posterior.train()
        total = self.train.steps() * self.epochs
        console = progress_console(self.progress if self.stepper.processes.first else False)
        with interruptible() as interrupt, ProgressDisplay(console) as display:
            progress = TrainingProgress(display, total, self.epochs)
            while self.epoch < self.epochs and self.ending is None and not self._interrupted(interrupt):
                if self._run_epoch(interrupt, progress):
                    self._end_epoch(progress)
            if self._interrupted(interrupt):
                self.history.stopped = "interrupted"
                progress.note(f"Interrupted after step {self.step}: what was learned until then is kept.")
                self._save()
            else:
                self.history.stopped = self.ending or "finished"
        if self.average is not None and (self.best is None or self.best.epoch is None):
            self.average.install()
        if self.best is not None:
            self.history.best_epoch = self.best.restore(posterior)
        exchange_buffers(posterior, self._own_statistics())
        posterior.finish(self._batches)
        return self.history

    def _run_epoch(self, interrupt: Interrupt, progress: TrainingProgress) -> bool:
        """The rest of the present epoch; whether its end was reached."""
        device = self.stepper.posterior.device
        started = time.monotonic()
        for batch in self.train.epoch(self.seed, self.epoch, self.batch, processes=self.stepper.processes):
            place = TrainingPosition(self.epoch, self.batch, self.step)
            self.stepper.stop = interrupt.requested
            held_out = self._drawn(self.calibration_data, "held-out", batch.total, place)
            outside = self._drawn(self.out_of_domain, "out-of-domain", batch.total, place)
            terms = self.stepper.step(on_device(batch, device), held_out, place, outside)
            self.history.steps.append(terms)
            self.batch += 1
            self.step += 1
            if self.average is not None:
                self.average.update("step", self.epoch + 1)
            if self.scheduler is not None and self.scheduler_interval == "step":
                self.scheduler.step()
            progress.update(self.epoch + 1, self.step, terms)
            if self._interrupted(interrupt):
                break
            if time.monotonic() - self._saved_at >= self.checkpoint_seconds:
                self._spent, started = self._spent + time.monotonic() - started, time.monotonic()
                self._save()
        self._spent += time.monotonic() - started
        return self.batch >= self.train.steps()

    def _interrupted(self, interrupt: Interrupt) -> bool:
        """Return True if training should stop; several processes stop after the same step, on which they agree."""
        return interrupt.requested if self.stepper.processes.size == 1 else self.stepper.stop

    def _drawn(self, source: Source | None, stream: str, count: int, place: TrainingPosition) -> Batch | None:
        if source is None:
            return None
        processes = self.stepper.processes
        drawn = source.draw(count, self.seed, stream, place.epoch, place.batch, processes=processes)
        return on_device(drawn, self.stepper.posterior.device)

    def _end_epoch(self, progress: TrainingProgress) -> None:
        check_weights(self.stepper.posterior, self.epoch + 1, self.step)
        self.stepper.posterior.after_epoch()
        if self.average is not None:
            self.average.update("epoch", self.epoch + 1)
            check_alike(self.stepper.posterior, self.stepper.processes, self.epoch + 1)
        with self._averaged():
            row = self._look()
        self.epoch, self.batch, self.first_step, self._spent = self.epoch + 1, 0, self.step, 0.0
        if self.scheduler is not None and self.scheduler_interval == "epoch":
            if isinstance(self.scheduler, ReduceLROnPlateau):
                self.scheduler.step(row.get("val_nll", row["total"]))
            else:
                self.scheduler.step()
        shown = [f"{name[4:]} {value:.4f}" for name, value in row.items() if name.startswith("val_")]
        progress.note(f"epoch {self.epoch}/{self.epochs}  loss {row['total']:.4f}  " + "  ".join(shown))
        self._save()

    def _averaged(self) -> AbstractContextManager[None]:
        """The average in place of the weights, if someone looks at them."""
        watched = self.validation is not None or self.on_epoch is not None
        if not watched:
            return nullcontext()
        return (
            replaced_buffers(self.stepper.posterior, self._own_statistics) if self.average is None else self.average.installed()
        )

    def _look(self) -> dict[str, float]:
        """Look at the posterior after an epoch: validation, the caller's own function, early stopping."""
        posterior, processes = self.stepper.posterior, self.stepper.processes
        seen = {"lr": float(self.stepper.optimizer.param_groups[0]["lr"])}
        if self.validation is not None:
            seen |= validation_metrics(
                posterior,
                self.validation,
                samples=self.validation_samples,
                seed=self.seed,
                processes=processes,
                refined=self.best is not None and self.best.rule.monitor == "refined-nll",
            )
        numbers, stop = called(self.on_epoch, posterior, self.epoch + 1)
        check_alike(posterior, processes, self.epoch + 1)
        # What the first process has seen decides for all: a last digit that differs must not part them.
        seen, stop = processes.from_first(lambda: ({**seen, **numbers}, stop))
        row = self.history.end_epoch(self.first_step, seen, self._spent)
        settled = all(member.settled for member in posterior.members)
        if self.best is not None and settled and self.best.update(posterior, row):
            self.ending = "early"
        if stop:
            self.ending = "callback"
        return row

    def _batches(self) -> Iterator[Batch]:
        device = self.stepper.posterior.device
        return (on_device(batch, device) for batch in self.train.ordered())

    def _norm_statistics(self) -> dict[str, Tensor]:
        settings = self.stepper.settings
        return member_norm_statistics(self.stepper.posterior, lambda: self.train, settings.seed, settings.micro_batch_size)

    def _own_statistics(self) -> dict[str, Tensor]:
        """Those of a posterior that predicts with an average of its own."""
        averages = any(member.needs_statistics for member in self.stepper.posterior.members)
        return self._norm_statistics() if averages else {}

    def _save(self) -> None:
        check_weights(self.stepper.posterior, self.epoch + 1, self.step)
        if self.folder is not None and self.stepper.processes.first:
            self.folder.write(self.step, self._state())
        self._saved_at = time.monotonic()

    def _state(self) -> dict[str, Any]:
        return {
            "posterior": dict(self.stepper.posterior.state_dict()),
            "optimizer": self.stepper.optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "scaler": self.stepper.scaler.state_dict(),
            "history": self.history.state(),
            "best": None if self.best is None else self.best.state(),
            "place": [self.epoch, self.batch, self.step, self.first_step],
            "average": None if self.average is None else self.average.state(),
            "ending": self.ending,
            "spent": self._spent,
        }

    def _load(self, state: dict[str, Any]) -> None:
        self.stepper.posterior.load_state_dict(state["posterior"])
        self.stepper.optimizer.load_state_dict(state["optimizer"])
        self.stepper.scaler.load_state_dict(state["scaler"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        if self.best is not None and state["best"] is not None:
            self.best.load(state["best"])
        self.history = History.from_state(state["history"])
        self.epoch, self.batch, self.step, self.first_step = state["place"]
        if self.average is not None:
            self.average.load(state["average"])
        early: Literal["early"] | None = "early" if state.get("stopping_early") else None  # as version 0.1 wrote it
        self.ending, self._spent = state.get("ending", early), state["spent"]
