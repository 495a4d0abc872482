"""What a comparison's trainings and predictions are known by, and what their records say."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor

from calibayes.calibration import WMMCE
from calibayes.errors import SweepError
from calibayes.methods import METHODS, Method, method_named, register_method
from calibayes.objective import SCHEMES
from calibayes.recipes.compare import jobs
from calibayes.recipes.compare.jobs import OPTIMIZER, Probs, Tested, Trained, load, scored
from calibayes.recipes.compare.settings import Run, Settings
from calibayes.recipes.compare.task import Task, digest
from calibayes.sweeps.records import Record
from calibayes.sweeps.results_folder import versions
from calibayes.sweeps.worker import Job

__all__ = ["RECIPE", "Memory"]

RECIPE = 2  # raise it when a training with the same settings would come out otherwise
_OF_A_TRAINING = ("epochs", "batch_size", "learning_rate", "samples", "predictive_samples", "prior_std", "init_std")


@dataclass(frozen=True)
class Memory:
    r"""The trainings of one task with one choice of settings.

    A training is known by all that determines it: the data (a checksum of the training and validation examples), the
    network, the settings of training, method, $\lambda$, $\beta$ and seed, and the versions of the recipe, calibayes and
    torch. Test examples have no part in it. How many seeds and which other candidates there are has none either, so a
    comparison that is started again with more of them takes up what is there.
    """

    task: Task
    settings: Settings
    common: dict[str, Any]
    test_data: str

    @classmethod
    def of(cls, task: Task, settings: Settings) -> Memory:
        """The memory for a task and settings; its data are loaded."""
        splits = load(task, settings)
        with torch.random.fork_rng(devices=[]):
            network = repr(task.network())
        known = versions()
        common = {
            "calibayes": known["calibayes"],
            "torch": known["torch"],
            "task": task.name,
            "network": network,
            "data": digest(splits.train, splits.validation),
            "optimizer": OPTIMIZER,
            "calibration_measure": repr(WMMCE()),
            **{name: getattr(settings, name) for name in _OF_A_TRAINING},
        }
        return cls(task, settings, common, digest(splits.test))

    def training(self, run: Run) -> Job:
        """The job that trains the run."""
        return self._job(run, "training", Training(self.task, self.settings, run, method_named(run.scheme)), {})

    def test(self, trained: Trained) -> Job:
        """The job that lets a trained network predict the test examples."""
        call = Test(self.task, self.settings, trained.run, trained.weights, method_named(trained.run.scheme))
        return self._job(trained.run, "test", call, {"test_data": self.test_data})

    def trained(self, record: Record) -> Trained:
        """What the record of a training says."""
        run, found = _result("training", record)
        probs: Probs = found["probs"].numpy()
        labels = load(self.task, self.settings).validation[1]
        weights = {name: torch.as_tensor(value) for name, value in found["weights"].items()}  # records hold numbers as such
        return Trained(run, probs, weights, found["seconds"], scored(probs, labels))

    def tested(self, record: Record) -> Tested:
        """What the record of a test says."""
        run, found = _result("test", record)
        probs: Probs = found["probs"].numpy()
        return Tested(run, probs, found["seconds"], scored(probs, load(self.task, self.settings).test[1]))

    def _job(self, run: Run, what: str, call: Training | Test, others: dict[str, Any]) -> Job:
        import cloudpickle

        return Job(
            call=cloudpickle.dumps(call),
            trial=f"calibayes compare: {what}",
            version=RECIPE,
            settings={**self.common, **others, **asdict(run), **self._of_method(run)},
            label=f"{run.scheme}-seed{run.seed}-{what}",
        )

    def _of_method(self, run: Run) -> dict[str, str]:
        """The settings of a method in full; those of the paper's schemes are in ``common``, unless more were given."""
        if run.scheme in SCHEMES and not self.settings.method_settings.get(run.scheme):
            return {}
        return {"method_settings": repr(method_named(run.scheme).configured(**self.settings.of_method(run)))}


@dataclass(frozen=True)
class Training:
    """`jobs.train` as it travels to a worker."""

    task: Task
    settings: Settings
    run: Run
    method: Method[Any]

    def __call__(self, _: dict[str, Any]) -> dict[str, Any]:
        _make_known(self.method)
        return jobs.train(self.task, self.settings, self.run)


@dataclass(frozen=True)
class Test:
    """`jobs.test` as it travels to a worker."""

    task: Task
    settings: Settings
    run: Run
    weights: dict[str, Tensor]
    method: Method[Any]

    def __call__(self, _: dict[str, Any]) -> dict[str, Any]:
        _make_known(self.method)
        return jobs.test(self.task, self.settings, self.run, self.weights)


def _make_known(method: Method[Any]) -> None:
    """Register a method that only the calling process has registered."""
    if method.name not in METHODS:
        register_method(method)


def _result(what: str, record: Record) -> tuple[Run, dict[str, Any]]:
    run = Run(**{field.name: record.settings[field.name] for field in fields(Run)})
    if record.result is None:
        raise SweepError(f"The {what} of {run} failed: {record.error}")
    return run, record.result
