"""What a comparison already knows from before: trainings and predictions in a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from calibayes.calibration import WMMCE
from calibayes.recipes.compare import jobs
from calibayes.recipes.compare.folder import versions
from calibayes.recipes.compare.jobs import OPTIMIZER, Probs, Tested, Trained, load, scored
from calibayes.recipes.compare.settings import Run, Settings
from calibayes.recipes.compare.store import DamagedError, Store
from calibayes.recipes.compare.task import Task, digest

__all__ = ["RECIPE", "Memory"]

RECIPE = 1  # raise it when a training with the same settings would come out otherwise
_OF_A_TRAINING = ("epochs", "batch_size", "learning_rate", "samples", "predictive_samples", "prior_std", "init_std")

Note = Callable[[str], None]


@dataclass(frozen=True)
class Memory:
    r"""The trainings of one task with one choice of settings, kept in a store or, without one, nowhere.

    A training is known by all that determines it: the data (a checksum of the training and validation examples), the
    network, the settings of training, scheme, $\lambda$, $\beta$ and seed, and the versions of the recipe, calibayes and
    torch. Test examples have no part in it. How many seeds and which other candidates there are has none either, so a
    comparison that is started again with more of them takes up what is there.
    """

    task: Task
    settings: Settings
    store: Store | None
    common: dict[str, Any]
    test_data: str

    @classmethod
    def at(cls, task: Task, settings: Settings, folder: Path | None) -> Memory:
        """The memory in a folder, which is made; ``None`` remembers nothing."""
        if folder is None:
            return cls(task, settings, None, {}, "")
        store = Store(folder)
        store.open()
        splits = load(task, settings)
        with torch.random.fork_rng(devices=[]):
            network = repr(task.network())
        known = versions()
        common = {
            "recipe": RECIPE,
            "calibayes": known["calibayes"],
            "torch": known["torch"],
            "task": task.name,
            "network": network,
            "data": digest(splits.train, splits.validation),
            "optimizer": OPTIMIZER,
            "calibration_measure": repr(WMMCE()),
            **{name: getattr(settings, name) for name in _OF_A_TRAINING},
        }
        return cls(task, settings, store, common, digest(splits.test))

    def trained(self, run: Run, note: Note | None = None) -> Trained | None:
        """The run's training if it is known; a damaged file is told to ``note`` and counts as unknown."""
        found = self._read(run, "training", note)
        if found is None:
            return None
        probs: Probs = found["probs"].numpy()
        weights = {name: value.numpy() for name, value in found["weights"].items()}
        return Trained(run, probs, weights, found["seconds"], scored(probs, load(self.task, self.settings).validation[1]))

    def tested(self, run: Run, note: Note | None = None) -> Tested | None:
        """What the run's network says about the test examples, if it is known."""
        found = self._read(run, "test", note)
        if found is None:
            return None
        probs: Probs = found["probs"].numpy()
        return Tested(run, probs, found["seconds"], scored(probs, load(self.task, self.settings).test[1]))

    def train(self, run: Run) -> Trained:
        """Train, and keep the result, unless another process has done so in the meantime."""
        known = self.trained(run)
        if known is not None:
            return known
        made = jobs.train(self.task, self.settings, run)
        weights = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in made.weights.items()}
        self._write(run, "training", {"probs": torch.from_numpy(made.probs), "weights": weights, "seconds": made.seconds})
        return made

    def test(self, trained: Trained) -> Tested:
        """Let a trained network predict the test examples, and keep the result."""
        known = self.tested(trained.run)
        if known is not None:
            return known
        made = jobs.test(self.task, self.settings, trained)
        self._write(trained.run, "test", {"probs": torch.from_numpy(made.probs), "seconds": made.seconds})
        return made

    def _identity(self, run: Run, what: str) -> dict[str, Any]:
        identity = {**self.common, "what": what, "run": asdict(run)}
        return {**identity, "test_data": self.test_data} if what == "test" else identity

    def _read(self, run: Run, what: str, note: Note | None) -> Any | None:
        if self.store is None:
            return None
        try:
            return self.store.read(f"{run.scheme}-seed{run.seed}-{what}", self._identity(run, what))
        except DamagedError as error:
            if note is not None:
                note(f"{error}. It is computed again.")
            return None

    def _write(self, run: Run, what: str, result: dict[str, Any]) -> None:
        if self.store is not None:
            self.store.write(f"{run.scheme}-seed{run.seed}-{what}", self._identity(run, what), result)
