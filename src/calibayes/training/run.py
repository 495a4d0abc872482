"""The training loop, and the state from which it can be taken up again."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from calibayes.checkpoint import CheckpointFolder
from calibayes.data.sources import Batch, Source
from calibayes.data.structure import moved
from calibayes.devices import widest
from calibayes.distributed import ALONE, Processes
from calibayes.distributed.processes import local_gpu
from calibayes.errors import CheckpointError, DriftError, InvalidArgumentError, NonFiniteLossError
from calibayes.metrics import accuracy, brier, ece, nll
from calibayes.posterior.base import Posterior
from calibayes.predictive import predict_source
from calibayes.training.data_terms import Place
from calibayes.training.history import History
from calibayes.training.interrupt import Interrupt, interruptible
from calibayes.training.progress import Progress
from calibayes.training.step import Stepper
from calibayes.training.stopping import Best

__all__ = ["OnEpoch", "Run", "chosen_device"]

OnEpoch = Callable[[Posterior, int], Mapping[str, float] | None]


@dataclass
class Run:
    """A training run: what it works on, and where it is."""

    stepper: Stepper
    train: Source
    epochs: int
    scheduler: LRScheduler | None
    scheduler_interval: Literal["epoch", "step"]
    validation: Source | None
    validation_samples: int
    calibration_data: Source | None
    best: Best | None
    folder: CheckpointFolder | None
    checkpoint_seconds: float
    on_epoch: OnEpoch | None
    progress: bool | None

    def __post_init__(self) -> None:
        self.history = History()
        self.epoch = self.batch = self.step = self.first_step = 0
        self.stopping_early = False
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
        with (
            interruptible() as interrupt,
            Progress(total, self.epochs, self.progress if self.stepper.processes.first else False) as progress,
        ):
            while self.epoch < self.epochs and not self.stopping_early and not self._interrupted(interrupt):
                if self._run_epoch(interrupt, progress):
                    self._end_epoch(progress)
            if self._interrupted(interrupt):
                self.history.stopped = "interrupted"
                progress.note(f"Interrupted after step {self.step}: what was learned until then is kept.")
                self._save()
            else:
                self.history.stopped = "early" if self.stopping_early else "finished"
        if self.best is not None:
            self.history.best_epoch = self.best.restore(posterior)
        return self.history

    def _run_epoch(self, interrupt: Interrupt, progress: Progress) -> bool:
        """The rest of the present epoch; whether its end was reached."""
        device = self.stepper.posterior.device
        started = time.monotonic()
        for batch in self.train.epoch(self.seed, self.epoch, self.batch, processes=self.stepper.processes):
            place = Place(self.epoch, self.batch, self.step)
            self.stepper.stop = interrupt.requested
            terms = self.stepper.step(_moved(batch, device), self._held_out(batch.total, place), place)
            self.history.steps.append(terms)
            self.batch += 1
            self.step += 1
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
        """Whether to stop; several processes stop after the same step, in which they have told each other."""
        return interrupt.requested if self.stepper.processes.size == 1 else self.stepper.stop

    def _held_out(self, count: int, place: Place) -> Batch | None:
        if self.calibration_data is None:
            return None
        processes = self.stepper.processes
        drawn = self.calibration_data.draw(count, self.seed, "held-out", place.epoch, place.batch, processes=processes)
        return _moved(drawn, self.stepper.posterior.device)

    def _end_epoch(self, progress: Progress) -> None:
        self._check_weights()
        self.stepper.posterior.after_epoch()
        extra = {"lr": float(self.stepper.optimizer.param_groups[0]["lr"]), **self._validated(), **self._seen()}
        self._check_alike()
        # What the first process has seen decides for all: a last digit that differs must not part them.
        extra = self.stepper.processes.from_first(lambda: extra)
        row = self.history.end_epoch(self.first_step, extra, self._spent)
        self.epoch, self.batch, self.first_step, self._spent = self.epoch + 1, 0, self.step, 0.0
        if self.scheduler is not None and self.scheduler_interval == "epoch":
            if isinstance(self.scheduler, ReduceLROnPlateau):
                self.scheduler.step(row.get("val_nll", row["total"]))
            else:
                self.scheduler.step()
        if self.best is not None:
            self.stopping_early = self.best.update(self.stepper.posterior, row)
        shown = [f"{name[4:]} {value:.4f}" for name, value in row.items() if name.startswith("val_")]
        progress.note(f"epoch {self.epoch}/{self.epochs}  loss {row['total']:.4f}  " + "  ".join(shown))
        self._save()

    def _validated(self) -> dict[str, float]:
        if self.validation is None:
            return {}
        predictive, targets, weights = predict_source(
            self.stepper.posterior,
            self.validation,
            samples=self.validation_samples,
            seed=self.seed,
            processes=self.stepper.processes,
        )
        metrics = (accuracy, ece, nll, brier)
        checked = [metric(predictive.probs, targets, weights=weights, check=index == 0) for index, metric in enumerate(metrics)]
        return {f"val_{metric.__name__}": value for metric, value in zip(metrics, checked, strict=True)}

    def _seen(self) -> dict[str, float]:
        """What the caller makes of the posterior as it is now."""
        found = None if self.on_epoch is None else self.on_epoch(self.stepper.posterior, self.epoch + 1)
        return {} if found is None else {name: float(value) for name, value in found.items()}

    def _check_alike(self) -> None:
        """Raise if processes have drifted apart, which what is random or statistical in a network or optimiser can do."""
        processes = self.stepper.processes
        if processes.size == 1:
            return
        total = 0
        for value in (*self.stepper.posterior.parameters(), *self.stepper.posterior.buffers()):
            total = zlib.crc32(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes(), total)
        if odd := processes.differ(total):
            raise DriftError(
                f"Processes {odd} have other weights than process 0 after epoch {self.epoch + 1}: something in the network or "
                "in the optimiser draws random numbers or takes statistics of its own. Train with `group=None`, or replace it."
            )

    def _check_weights(self) -> None:
        """A gradient that is not finite shows in the weights only; they must not be validated, nor replace a checkpoint."""
        for name, parameter in self.stepper.posterior.named_parameters():
            if not bool(parameter.isfinite().all()):
                raise NonFiniteLossError(
                    f"{name!r} is not finite after step {self.step} (epoch {self.epoch + 1}), though the loss was: a gradient "
                    "overflowed or is NaN. Try `clip_norm` or a smaller learning rate.",
                    term="gradient",
                    epoch=self.epoch + 1,
                    step=self.step,
                )

    def _save(self) -> None:
        self._check_weights()
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
            "stopping_early": self.stopping_early,
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
        self.stopping_early, self._spent = state["stopping_early"], state["spent"]


def _moved(batch: Batch, device: torch.device) -> Batch:
    weights = None if batch.weights is None else batch.weights.to(device, widest(device))
    return Batch(moved(batch.inputs, device), batch.targets.to(device), batch.total, weights)


def chosen_device(device: str | torch.device | None, processes: Processes = ALONE) -> torch.device:
    """The device asked for, or the fastest there is; each of several processes has a GPU of its own."""
    if device is not None:
        try:
            return torch.empty(0, device=device).device
        except (RuntimeError, AssertionError, TypeError) as error:
            raise InvalidArgumentError(f"Expected `device` to be one that is here, but got {device!r}: {error}") from error
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device() if processes.size == 1 else local_gpu())
    return torch.device("mps" if torch.backends.mps.is_available() and processes.size == 1 else "cpu")
