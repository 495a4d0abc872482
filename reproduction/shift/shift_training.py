"""One training, and its scores on test examples as they are and under every shift."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

from calibayes.checks import positive_integer
from calibayes.data.augment import Augmented
from calibayes.methods import method_named
from calibayes.metrics import accuracy, aurc, brier, ece, nll
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posthoc.temperature import TemperatureScaling
from calibayes.posthoc.temperature_choice import temperature_or_identity
from calibayes.predictive import predict, samples_for
from calibayes.recipes.fitting import plan_from_seed
from calibayes.recipes.single_training import TrainingSettings, fit_with_settings
from calibayes.recipes.training_scores import rounded
from reproduction.shift.people import people_of_test_images, scores_by_people
from reproduction.shift.shift_tasks import TASKS, ShiftedPart

__all__ = ["SHIFT_SCORES", "ShiftTraining", "check_shift", "shift_trial"]

SHIFT_SCORES = {"nll": nll, "ece": ece, "aurc": aurc, "accuracy": accuracy, "brier": brier}
_BATCH = 128  # larger ones leave the cache of a core


@dataclass(frozen=True, kw_only=True)
class ShiftTraining(TrainingSettings):
    """The settings of a training that is scored under shift; those of the method are its defaults in the registry."""

    task: Literal["fashion", "cifar10", "newsgroups", "digits"] = "fashion"
    optimizer: Literal["rmsprop", "adam"] = "adam"
    schedule: Literal["constant", "cosine"] = "cosine"
    predictive_samples: int = 10
    members: int = 1  # of ensembles
    input_dropout: float = 0.0  # of patches, words or columns
    train: int | None = None  # training examples; all of the task's by default
    test: int | None = None  # validation and test examples, each; all by default
    shifted: int = 500  # test examples under each shift

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("members", "shifted"):
            positive_integer(name, getattr(self, name))

    def of_method(self, steps: int) -> dict[str, Any]:
        """The settings of the method, by name; as in `TrainingSettings`."""
        members = {"members": self.members} if method_named(self.scheme).has("members") else {}
        return super().of_method(steps) | members


def shift_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train with these settings, and score with and without a temperature fitted on unshifted validation examples.

    Names are those of `ShiftTraining`. On CIFAR-10 the unshifted test examples are scored by people's answers as well.
    """
    chosen = ShiftTraining.of(settings)
    task = TASKS[chosen.task]
    splits = task.load(chosen.train, chosen.test)
    steps = -(-len(splits.train[1]) // chosen.batch_size)
    plan = plan_from_seed(chosen.scheme, lambda: task.network(chosen.input_dropout), chosen.seed, **chosen.of_method(steps))
    begin = time.process_time()
    fit_with_settings(chosen, plan, Augmented(splits.train) if task.augment else splits.train)
    trained = time.process_time()
    validation, test = (_predicted(chosen, plan.posterior, x) for x, _ in (splits.validation, splits.test))
    scaling, _ = temperature_or_identity(validation, splits.validation[1])
    shifts: dict[str, dict[str, Any]] = {name: {} for name in task.shifts}
    for part in _shifted(chosen.task, chosen.train, chosen.test, chosen.shifted):
        probs = _predicted(chosen, plan.posterior, part.x)
        shifts[part.name][str(part.severity)] = _scores(probs, part.y, scaling)
    targets, same = splits.test[1], slice(chosen.shifted)
    final: dict[str, Any] = {
        "temperature": rounded(float(scaling.temperature)),
        "all_test": _scores(test, targets, scaling),
        "unshifted": _scores(test[same], targets[same], scaling),
        "shifts": shifts,
    }
    if chosen.task == "cifar10":
        people = people_of_test_images(chosen.test)
        final["people"] = {
            "plain": scores_by_people(test, people),
            "scaled": scores_by_people(scaling.transform(test), people),
        }
    return {
        "final": final,
        "examples": {name: len(getattr(splits, name)[1]) for name in ("train", "validation", "test")},
        "training_seconds": round(trained - begin, 3),
        "scoring_seconds": round(time.process_time() - trained, 3),
        "threads": torch.get_num_threads(),
    }


def check_shift(settings: Mapping[str, Any]) -> None:
    """Raise if the data of a training are not on this machine."""
    TASKS[settings["task"]].check()
    if settings["task"] == "cifar10":
        people_of_test_images(1)


@lru_cache(maxsize=1)
def _shifted(task: str, train: int | None, test: int | None, count: int) -> tuple[ShiftedPart, ...]:
    """The shifted test parts, which the trainings of a process share."""
    return tuple(TASKS[task].shifted(TASKS[task].load(train, test), count))


def _predicted(chosen: ShiftTraining, posterior: Posterior, x: Tensor) -> Tensor:
    """Probabilities in float64: under shift some are below those of float32."""
    samples = samples_for(posterior, chosen.predictive_samples)
    return predict(posterior, x, samples=samples, batch_size=_BATCH, seed=chosen.seed, dtype=torch.float64).probs.cpu()


def _scores(probs: Tensor, targets: Tensor, scaling: TemperatureScaling) -> dict[str, dict[str, float]]:
    ways = {"plain": probs, "scaled": scaling.transform(probs)}
    return {
        way: {name: rounded(score(each, targets, check=False)) for name, score in SHIFT_SCORES.items()}
        for way, each in ways.items()
    }
