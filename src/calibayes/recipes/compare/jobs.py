"""The jobs of worker processes: train one classifier, predict the test examples with it; and the records of their results."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibayes.calibration import WMMCE
from calibayes.data import Splits
from calibayes.data.overlap import check_apart
from calibayes.errors import SweepError
from calibayes.methods import METHODS, Method, Plan, method_named, register_method
from calibayes.methods.fit_arguments import prediction_passes
from calibayes.metrics import Scores, evaluate
from calibayes.objective import SCHEMES
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.predictive import predict, samples_for
from calibayes.recipes.compare.baselines import BaselineChoice, fit_baseline, inputs_digest, plain_inputs
from calibayes.recipes.compare.comparison_settings import BASELINES, MethodRun, Settings
from calibayes.recipes.compare.comparison_task import Task, digest
from calibayes.recipes.fitting import fit_plan, plan_from_seed
from calibayes.sweeps.records import Record
from calibayes.sweeps.results_folder import versions
from calibayes.sweeps.worker import Job

__all__ = ["OPTIMIZER", "RECIPE", "Effort", "ScoredRun", "TrainingRecords", "effort", "load", "scored", "test", "train"]

RECIPE = 2  # raise it when the same settings would give another result
_OF_A_TRAINING = ("epochs", "batch_size", "learning_rate", "samples", "predictive_samples", "prior_std", "init_std")
OPTIMIZER = "Adam, learning rate to zero along a cosine"
_BATCH = 128  # of predictions: what fits into a core's cache
_BASELINE_EPOCHS = 5  # of a small network, which take about as long as five folds of a baseline

Probs = NDArray[np.float32]


@lru_cache(maxsize=1)
def load(task: Task, settings: Settings) -> Splits:
    """The task's data, the same for every run; parts that share examples are rejected."""
    splits = task.load(settings.train, settings.validation, settings.test)
    for first, second in combinations(("train", "validation", "test"), 2):
        check_apart(getattr(splits, first), getattr(splits, second), first, second)
    return splits


def scored(probs: Probs, targets: Tensor) -> Scores:
    """Every score of a network's probabilities."""
    return evaluate(torch.from_numpy(probs), targets, intervals=False)


def train(task: Task, settings: Settings, run: MethodRun) -> dict[str, Any]:
    """Train one network or baseline, and predict the validation examples; the test examples are not used."""
    begin = time.process_time()
    if run.scheme in BASELINES:
        probs, choice = _baseline(task, settings, run, "validation", None)
        return {"probs": probs, "choice": choice._asdict(), "seconds": time.process_time() - begin}
    splits = load(task, settings)
    plan = _untrained(task, settings, run)
    named = {name: getattr(settings, name) for name in ("learning_rate", "epochs", "batch_size", "samples")}
    fit_plan(plan, splits.train, seed=run.seed, device="cpu", **named)
    probs = _probs(settings, run, plan.posterior, splits.validation[0])
    return {"probs": probs, "weights": plan.posterior.state_dict(), "seconds": time.process_time() - begin}


def test(
    task: Task, settings: Settings, run: MethodRun, weights: dict[str, Tensor], choice: BaselineChoice | None
) -> dict[str, Any]:
    """Predict the test examples with a trained network, or with a baseline, which is fitted again as it was before."""
    begin = time.process_time()
    if choice is not None:
        probs, _ = _baseline(task, settings, run, "test", choice)
        return {"probs": probs, "seconds": time.process_time() - begin}
    posterior = _untrained(task, settings, run).posterior
    posterior.load_state_dict(weights)
    probs = _probs(settings, run, posterior, load(task, settings).test[0])
    return {"probs": probs, "seconds": time.process_time() - begin}


def _baseline(
    task: Task, settings: Settings, run: MethodRun, part: str, choice: BaselineChoice | None
) -> tuple[Probs, BaselineChoice]:
    splits = load(task, settings)
    inputs = plain_inputs(task, settings, splits)
    assert inputs is not None  # else `suitable_baselines` leaves it out
    targets, classes = splits.train[1].numpy(), len(splits.classes)
    return fit_baseline(run.scheme, inputs, targets, classes, run.seed, part=part, choice=choice)


@dataclass(frozen=True)
class Effort:
    """The effort of training a method and of predicting with it."""

    members: int  # networks that are trained; none for a baseline
    random: bool  # True if a prediction averages over samples of the weights
    training: float  # rough duration of `train`, in forward passes of one example
    test: float  # rough duration of `test`, in the same unit


@lru_cache(maxsize=64)
def effort(task: Task, settings: Settings, method: str) -> Effort:
    """The effort of one training and one test of a method."""
    if method in BASELINES:
        return Effort(0, False, _BASELINE_EPOCHS * 8.0 * settings.train, _BASELINE_EPOCHS * 4.0 * settings.train)
    run = next(each for each in settings.candidates() if each.scheme == method)
    posterior = _untrained(task, settings, run).posterior
    passes, members = prediction_passes(posterior, settings.predictive_samples), len(posterior.members)
    steps = 4.0 * settings.train * settings.epochs * settings.samples * members
    random = any(member.random for member in posterior.members)
    return Effort(members, random, steps + passes * settings.validation, float(passes * settings.test))


def _untrained(task: Task, settings: Settings, run: MethodRun) -> Plan:
    """The run's posterior and objective; the same seed gives all methods the same initial weights."""
    return plan_from_seed(run.scheme, task.network, run.seed, **settings.of_method(run))


def _probs(settings: Settings, run: MethodRun, posterior: Posterior, images: Tensor) -> Probs:
    samples = samples_for(posterior, settings.predictive_samples)
    probs: Probs = predict(posterior, images, samples=samples, batch_size=_BATCH, seed=run.seed).probs.float().numpy()
    return probs


@dataclass(frozen=True)
class ScoredRun:
    """A run's predictions of the validation or the test examples, and their scores."""

    run: MethodRun
    probs: Probs
    seconds: float  # of training or testing
    scores: Scores  # of the predictions
    weights: dict[str, Tensor] = field(default_factory=dict)  # the trained ones; empty for a test and for a baseline
    choice: BaselineChoice | None = None  # what was chosen for a baseline


@dataclass(frozen=True)
class TrainingRecords:
    r"""The trainings of one task with one choice of settings.

    A training is identified by all that determines it: the data (a checksum of the training and validation examples), the
    network, the settings of training, method, $\lambda$, $\beta$ and seed, and the versions of the recipe, calibayes and
    torch; but not by test examples, other seeds or other candidates. So a comparison that is started again with more of them
    uses the trainings that it has.
    """

    task: Task
    settings: Settings
    common: dict[str, Any]
    common_of_baselines: dict[str, Any]
    test_data: dict[str, str]  # checksums

    @classmethod
    def of(cls, task: Task, settings: Settings) -> TrainingRecords:
        """The records for a task and settings; this loads the data."""
        splits = load(task, settings)
        with torch.random.fork_rng(devices=[]):
            network = repr(task.network())
        common = {
            **{name: version for name, version in versions().items() if name in ("calibayes", "torch")},
            "task": task.name,
            "network": network,
            "data": digest(splits.train, splits.validation),
            "optimizer": OPTIMIZER,
            "calibration_measure": repr(WMMCE()),
            **{name: getattr(settings, name) for name in _OF_A_TRAINING},
        }
        of_baselines, test_data = {}, {"test_data": digest(splits.test)}
        inputs = plain_inputs(task, settings, splits) if settings.baselines else None
        if inputs is not None:
            from sklearn import __version__

            of_baselines = {name: common[name] for name in ("calibayes", "task", "data")}
            of_baselines |= {"scikit-learn": __version__, "inputs": inputs_digest(inputs, "train", "validation")}
            test_data["test_inputs"] = inputs_digest(inputs, "test")
        return cls(task, settings, common, of_baselines, test_data)

    def training(self, run: MethodRun) -> Job:
        """The job that trains the run."""
        return self._job(run, "training", None, None)

    def test(self, trained: ScoredRun) -> Job:
        """The job that predicts the test examples with a trained network or baseline."""
        names = ("test_data", "test_inputs") if trained.run.scheme in BASELINES else ("test_data",)
        others = {name: self.test_data[name] for name in names}
        return self._job(trained.run, "test", trained.weights, trained.choice, **others)

    def _job(
        self, run: MethodRun, what: str, weights: dict[str, Tensor] | None, choice: BaselineChoice | None, **others: Any
    ) -> Job:
        import cloudpickle

        baseline = run.scheme in BASELINES
        method = None if baseline else method_named(run.scheme)
        common = self.common_of_baselines if baseline else {**self.common, **self._of_method(run)}
        return Job(
            call=cloudpickle.dumps(PortableJob(self.task, self.settings, run, method, weights, choice)),
            trial=f"calibayes compare: {what}",
            version=RECIPE,
            settings={**common, **others, **asdict(run)},
            label=f"{run.scheme}-seed{run.seed}-{what}",
        )

    def scored(self, record: Record, what: Literal["training", "test"]) -> ScoredRun:
        """The results in the record of a training or a test."""
        run = MethodRun(**{field.name: record.settings[field.name] for field in fields(MethodRun)})
        result = record.result
        if result is None:
            raise SweepError(f"The {what} of {run} failed: {record.error}")
        splits = load(self.task, self.settings)
        labels = (splits.validation if what == "training" else splits.test)[1]
        probs: Probs = result["probs"].numpy()
        weights = {name: torch.as_tensor(value) for name, value in result.get("weights", {}).items()}
        choice = BaselineChoice(**result["choice"]) if "choice" in result else None
        return ScoredRun(run, probs, result["seconds"], scored(probs, labels), weights, choice)

    def _of_method(self, run: MethodRun) -> dict[str, str]:
        """The settings of a method in full; those of the paper's schemes are in ``common``, unless more were given."""
        if run.scheme in SCHEMES and not self.settings.method_settings.get(run.scheme):
            return {}
        return {"method_settings": repr(method_named(run.scheme).configured(**self.settings.of_method(run)))}


@dataclass(frozen=True)
class PortableJob:
    """`train`, or `test` if there are weights (a baseline has an empty dict of them), as it is sent to a worker."""

    task: Task
    settings: Settings
    run: MethodRun
    method: Method[Any] | None  # None for a baseline
    weights: dict[str, Tensor] | None
    choice: BaselineChoice | None

    def __call__(self, _: dict[str, Any]) -> dict[str, Any]:
        if self.method is not None and self.method.name not in METHODS:  # only the calling process has registered it
            register_method(self.method)
        if self.weights is None:
            return train(self.task, self.settings, self.run)
        return test(self.task, self.settings, self.run, self.weights, self.choice)
