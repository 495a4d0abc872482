"""The records of a comparison's trainings and tests: what identifies them, and the results that they hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from calibayes.calibration import WMMCE
from calibayes.errors import SweepError
from calibayes.methods import METHODS, Method, method_named, register_method
from calibayes.metrics import Scores
from calibayes.objective import SCHEMES
from calibayes.recipes.compare import jobs
from calibayes.recipes.compare.comparison_settings import MethodRun, Settings
from calibayes.recipes.compare.comparison_task import Task, digest
from calibayes.recipes.compare.jobs import OPTIMIZER, Probs, load, scored
from calibayes.sweeps.records import Record
from calibayes.sweeps.results_folder import versions
from calibayes.sweeps.worker import Job

__all__ = ["RECIPE", "ScoredRun", "TrainingRecords"]

RECIPE = 2  # raise it when a training with the same settings would come out otherwise
_OF_A_TRAINING = ("epochs", "batch_size", "learning_rate", "samples", "predictive_samples", "prior_std", "init_std")


@dataclass(frozen=True)
class ScoredRun:
    """A run's predictions of the validation or the test examples, and their scores."""

    run: MethodRun  # what was trained
    probs: Probs  # what it predicts
    seconds: float  # how long training or testing took
    scores: Scores  # of the predictions
    weights: dict[str, Tensor] = field(default_factory=dict)  # the trained ones; none in the record of a test


@dataclass(frozen=True)
class TrainingRecords:
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
    def of(cls, task: Task, settings: Settings) -> TrainingRecords:
        """The records for a task and settings; its data are loaded."""
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

    def training(self, run: MethodRun) -> Job:
        """The job that trains the run."""
        return self._job(run, "training", None, {})

    def test(self, trained: ScoredRun) -> Job:
        """The job that lets a trained network predict the test examples."""
        return self._job(trained.run, "test", trained.weights, {"test_data": self.test_data})

    def trained(self, record: Record) -> ScoredRun:
        """The results in the record of a training."""
        return self._scored(record, "training", load(self.task, self.settings).validation[1])

    def tested(self, record: Record) -> ScoredRun:
        """The results in the record of a test."""
        return self._scored(record, "test", load(self.task, self.settings).test[1])

    def _scored(self, record: Record, what: str, labels: Tensor) -> ScoredRun:
        run = MethodRun(**{field.name: record.settings[field.name] for field in fields(MethodRun)})
        if record.result is None:
            raise SweepError(f"The {what} of {run} failed: {record.error}")
        found = record.result
        probs: Probs = found["probs"].numpy()
        weights = {name: torch.as_tensor(value) for name, value in found.get("weights", {}).items()}  # records hold numbers
        return ScoredRun(run, probs, found["seconds"], scored(probs, labels), weights)

    def _job(self, run: MethodRun, what: str, weights: dict[str, Tensor] | None, others: dict[str, Any]) -> Job:
        import cloudpickle

        call = PortableJob(self.task, self.settings, run, method_named(run.scheme), weights)
        return Job(
            call=cloudpickle.dumps(call),
            trial=f"calibayes compare: {what}",
            version=RECIPE,
            settings={**self.common, **others, **asdict(run), **self._of_method(run)},
            label=f"{run.scheme}-seed{run.seed}-{what}",
        )

    def _of_method(self, run: MethodRun) -> dict[str, str]:
        """The settings of a method in full; those of the paper's schemes are in ``common``, unless more were given."""
        if run.scheme in SCHEMES and not self.settings.method_settings.get(run.scheme):
            return {}
        return {"method_settings": repr(method_named(run.scheme).configured(**self.settings.of_method(run)))}


@dataclass(frozen=True)
class PortableJob:
    """`jobs.train`, or `jobs.test` if there are weights, as it travels to a worker."""

    task: Task
    settings: Settings
    run: MethodRun
    method: Method[Any]
    weights: dict[str, Tensor] | None

    def __call__(self, _: dict[str, Any]) -> dict[str, Any]:
        if self.method.name not in METHODS:  # only the calling process has registered it
            register_method(self.method)
        if self.weights is None:
            return jobs.train(self.task, self.settings, self.run)
        return jobs.test(self.task, self.settings, self.run, self.weights)
