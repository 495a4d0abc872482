"""Scores of a trained posterior: as it is, with a temperature, and with the scaling that validation examples prefer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from benchmarks.methods.task_data import SEVERITIES, TaskData
from benchmarks.methods.tasks import Task
from benchmarks.methods.test_chance import deviations, packed
from calibayes import metrics
from calibayes.acting import PredictionSets, outsider_scores
from calibayes.acting.detection import auroc
from calibayes.posterior import Posterior
from calibayes.posthoc import AutoScaling, NoScaling, PosthocWarning, refined_nll
from calibayes.posthoc.abstract_scaling import Scaling
from calibayes.posthoc.temperature_choice import temperature_or_identity
from calibayes.predictive import Predictive, predict, samples_for
from calibayes.recipes.training_scores import rounded
from reproduction.shift.people import scores_by_people

__all__ = ["OUTSIDER_SCORES", "SCORES", "SHIFT_SCORES", "WAYS", "predicted", "scored", "validation_nll"]

WAYS = ("plain", "temperature", "best")
SCORES = ("accuracy", "nll", "ece", "smooth_ece", "brier", "aurc")
SHIFT_SCORES = ("accuracy", "nll", "ece", "aurc")
OUTSIDER_SCORES: tuple[Literal["max-prob", "entropy", "epistemic"], ...] = ("max-prob", "entropy", "epistemic")
_COVERAGE = 0.9
_BATCH = 128  # larger ones leave the cache of a core


def validation_nll(posterior: Posterior, task: Task, data: TaskData, seed: int) -> float:
    """The validation NLL after temperature scaling, which settings are chosen by."""
    x, y = data.splits.validation
    return float(refined_nll(predicted(posterior, task, x, seed).probs, y))


def scored(posterior: Posterior, task: Task, data: TaskData, seed: int) -> dict[str, Any]:
    """All scores by name; scalings are fitted on validation examples as they are, not shifted."""
    (x, y), (test_x, test_y) = data.splits.validation, data.splits.test
    validation, test = (predicted(posterior, task, each, seed) for each in (x, test_x))
    scalings = _scalings(validation.probs, y)
    result: dict[str, Any] = {
        "temperature": rounded(float(getattr(scalings["temperature"], "temperature", 1.0))),
        "best": str(getattr(scalings["best"], "chosen", "none")),
        "validation": _in_all_ways(scalings, validation.probs, y, SCORES),
        "cross_validated_nll": _cross_validated(scalings["best"]),
        "test": _in_all_ways(scalings, test.probs, test_y, SCORES),
        "passes": _passes(posterior, task),
    }
    for way, scaling in scalings.items():
        sets = PredictionSets.fit(scaling.transform(validation.probs), y, coverage=_COVERAGE)
        inside = sets.predict(scaling.transform(test.probs))
        result["test"][way]["set_size"] = rounded(float(inside.sum(1).double().mean()))
        result["test"][way]["set_coverage"] = rounded(float(inside.gather(1, test_y[:, None]).double().mean()))
    shifted = [(severity, predicted(posterior, task, x, seed).probs, y) for severity, x, y in data.shifted(task.shifted)]
    result["shift"] = _under_shift(shifted, scalings)
    if task.draws_examples:
        worst = [(probs, y) for severity, probs, y in shifted if severity == SEVERITIES[-1]]
        result["chance"] = {
            way: _chance(scaling, [(test.probs, test_y)]) | _chance(scaling, worst, f"_shift{SEVERITIES[-1]}")
            for way, scaling in scalings.items()
        }
    result["outsiders"] = {name: _told_apart(test, predicted(posterior, task, x, seed)) for name, x in data.outsiders.items()}
    if data.people is not None:
        result["people"] = {
            way: scores_by_people(scaling.transform(test.probs), data.people) for way, scaling in scalings.items()
        }
    return result


def predicted(posterior: Posterior, task: Task, x: Tensor, seed: int) -> Predictive:
    """Probabilities in float64: under shift some are below those of float32."""
    samples = samples_for(posterior, _samples(posterior, task))
    return predict(posterior, x, samples=samples, batch_size=_BATCH, seed=seed, dtype=torch.float64)


def _samples(posterior: Posterior, task: Task) -> int:
    members = len(posterior.members)
    return task.samples if members == 1 else members * max(1, task.samples // 2)


def _passes(posterior: Posterior, task: Task) -> int:
    each = -(-_samples(posterior, task) // len(posterior.members))
    return sum(each if member.random else 1 for member in posterior.members)


def _scalings(probs: Tensor, y: Tensor) -> dict[str, Scaling]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosthocWarning)  # with few examples a scaling stays as it is
        return {
            "plain": NoScaling().fit(probs, y),
            "temperature": temperature_or_identity(probs, y)[0],
            "best": AutoScaling().fit(probs, y),
        }


def _cross_validated(scaling: Scaling) -> dict[str, float]:
    """The validation NLL of each way on folds that its scaling was not fitted on."""
    if not isinstance(scaling, AutoScaling):
        raise TypeError(f"{scaling!r} was not chosen by cross-validation.")
    tried = {each.name: each.nll for each in scaling.results}
    names = {"plain": "none", "temperature": "temperature", "best": scaling.chosen}
    return {way: rounded(tried[name]) for way, name in names.items() if name in tried}


def _in_all_ways(scalings: Mapping[str, Scaling], probs: Tensor, y: Tensor, names: tuple[str, ...]) -> dict[str, Any]:
    return {
        way: {name: rounded(getattr(metrics, name)(scaling.transform(probs), y)) for name in names}
        for way, scaling in scalings.items()
    }


def _chance(scaling: Scaling, parts: list[tuple[Tensor, Tensor]], suffix: str = "") -> dict[str, str]:
    found = deviations([(scaling.transform(probs), y) for probs, y in parts])
    return {score + suffix: packed(values) for score, values in found.items()}


def _under_shift(
    shifted: list[tuple[int, Tensor, Tensor]], scalings: Mapping[str, Scaling]
) -> dict[str, dict[str, dict[str, float]]]:
    """Means over shifts, by severity and way."""
    by_severity: dict[str, list[dict[str, dict[str, float]]]] = {}
    for severity, probs, y in shifted:
        by_severity.setdefault(str(severity), []).append(_in_all_ways(scalings, probs, y, SHIFT_SCORES))
    return {
        severity: {
            way: {name: rounded(float(np.mean([each[way][name] for each in parts]))) for name in SHIFT_SCORES} for way in WAYS
        }
        for severity, parts in by_severity.items()
    }


def _told_apart(insiders: Predictive, outsiders: Predictive) -> dict[str, float]:
    """AUROC of each score."""
    pairs = {name: [outsider_scores(each, name).numpy() for each in (insiders, outsiders)] for name in OUTSIDER_SCORES}
    return {name: rounded(auroc(*pair)) for name, pair in pairs.items()}
