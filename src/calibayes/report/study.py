"""Scores, differences and verdicts of several classifiers on the same examples, to be printed, written or drawn."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import torch

import calibayes
from calibayes.acting.guarantee_request import GuaranteeRequest
from calibayes.acting.guarantees import Guarantees, calibrate_guarantees, certify_pairs
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError
from calibayes.metrics import Array, Difference, ReliabilityBins, RiskCoverage, Scores
from calibayes.metrics.agreement import beyond_chance
from calibayes.metrics.bins import DEFAULT_BINS
from calibayes.metrics.bootstrap import draws
from calibayes.metrics.evaluate import EvaluationSettings, check_names, intervals_of, scores_of
from calibayes.metrics.intervals import ChanceDeviations
from calibayes.metrics.metric_values import values
from calibayes.metrics.paired_differences import chance_deviations, differences_between
from calibayes.metrics.prediction_arrays import Predictions, as_predictions
from calibayes.metrics.score_table import as_json_numbers
from calibayes.metrics.selective import curve
from calibayes.report.confidence_verdict import TemperatureEffect, Verdict, compared, temperature_effect, verdict

__all__ = ["Model", "Pair", "Study", "study"]

_POINTS = 200  # of a risk–coverage curve


@dataclass(frozen=True, eq=False)
class Model:
    """One classifier.

    Attributes:
        name: its name.
        scores: every metric, with intervals.
        verdict: the judgement of its confidence.
        temperature: the effect of temperature scaling; None if there are too few examples to try.
        reliability: the bins of its reliability diagram.
        risk_coverage: its risk–coverage curve.
        guarantees: prediction sets and a certified threshold, if asked for.
    """

    name: str
    scores: Scores
    verdict: Verdict
    temperature: TemperatureEffect | None
    reliability: ReliabilityBins
    risk_coverage: RiskCoverage
    guarantees: Guarantees | None = None


@dataclass(frozen=True)
class Pair:
    """Two classifiers compared: ``first`` minus ``second`` in every metric."""

    first: str
    second: str
    differences: dict[str, Difference]

    @property
    def text(self) -> str:
        """The comparison in a sentence."""
        return compared(self.first, self.second, self.differences)


@dataclass(frozen=True, eq=False, kw_only=True)
class Study:
    """The result of `study`.

    Attributes:
        models: the classifiers.
        pairs: every two of them compared.
        settings: of the metrics and the bootstrap.
        class_names: the names of the classes.
        origin: where the predictions came from, for the report.
    """

    models: list[Model]
    pairs: list[Pair]
    settings: dict[str, Any]
    class_names: tuple[str, ...]
    origin: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, text, lists and dicts that JSON has: NaN is None, and infinite numbers are text."""
        first = self.models[0].scores
        content = {
            "calibayes": calibayes.__version__,
            "command": self.origin.get("command"),
            "data": {
                "n": first.n,
                "classes": first.classes,
                "pairs": first.pairs,
                "class_names": list(self.class_names),
                "files": self.origin.get("files", []),
            },
            "settings": self.settings,
            "versions": {"python": platform.python_version(), "torch": str(torch.__version__), "numpy": np.__version__},
            "metrics": [{**metric._asdict(), "title": first.title(metric.name)} for metric in first.metrics],
            "models": [_model(each, self.settings["level"]) for each in self.models],
            "differences": [
                {
                    "first": pair.first,
                    "second": pair.second,
                    "text": pair.text,
                    "metrics": {name: each._asdict() for name, each in pair.differences.items()},
                }
                for pair in self.pairs
            ],
        }
        numbers: dict[str, Any] = as_json_numbers(content)
        return numbers


def study(
    models: Mapping[str, Array | Predictions],
    targets: Array | None = None,
    *,
    class_names: Sequence[str] | None = None,
    weights: Array | None = None,
    logits: Mapping[str, Array] | None = None,
    bins: int = DEFAULT_BINS,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    target_accuracy: float = 0.95,
    guarantees: GuaranteeRequest | None = None,
    origin: Mapping[str, Any] | None = None,
) -> Study:
    """Evaluate one or several classifiers on the same examples, and compare every two of them.

    Args:
        models: the class probabilities of each by name, shape ``[n, K]`` or one column for two classes; or `as_pairs`.
        targets: the true classes, integers of shape ``[n]``; not needed for pairs.
        class_names: the names of the classes, in the order of the columns.
        weights: how much each example counts.
        logits: the logits behind the probabilities by name, if known, to fit the temperature to.
        bins: of the binned errors.
        level: of the intervals.
        replicates: the number of bootstrap samples.
        seed: of the bootstrap.
        target_accuracy: of the coverage.
        guarantees: prediction sets and a threshold to calibrate on the examples, which the classifier must not have seen.
        origin: ``command`` and ``files``, for the report.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1]]).expand(1000, 2)
        >>> result = study({"sure": probs}, torch.tensor([0] * 700 + [1] * 300), replicates=200)
        >>> print(result.models[0].verdict.text.split(" (")[0])
        Overconfident: it says 90 %, it is right 70 %
    """
    if not isinstance(models, Mapping) or not models:
        raise InvalidArgumentError(
            f"Expected `models` to be probabilities by name, like {{'mine': probs}}, but got {models!r:.60}."
        )
    settings = EvaluationSettings(bins, target_accuracy=target_accuracy, seed=seed)
    evaluated: list[Model] = []
    deviations: dict[str, dict[str, ChanceDeviations]] = {}
    for name, probs in models.items():
        predictions = probs if isinstance(probs, Predictions) else _with_targets(probs, targets, weights)
        if evaluated and predictions.classes != evaluated[0].scores.classes:
            raise InvalidProbabilitiesError(
                f"Expected the same classes for all models, but {name!r} has {predictions.classes}."
            )
        names = None if predictions.pairs else check_names(class_names, predictions.classes)
        sample = settings.sample(predictions, resample=True)
        measured = values(sample)
        resampled = draws(sample, measured, replicates, seed)
        ends = intervals_of(sample, measured, resampled, level)
        scores = scores_of(sample, measured, ends, level, names, pairs=predictions.pairs)
        if len(models) > 1:
            deviations[name] = chance_deviations(resampled, level)
        effect = None
        if not isinstance(probs, Predictions) and targets is not None:
            own_logits = None if logits is None else logits.get(name)
            effect = temperature_effect(probs, targets, weights=weights, logits=own_logits, bins=bins, seed=seed)
        risk = curve(sample.cells, sample.tally.n)
        guaranteed = None if guarantees is None else _guaranteed(guarantees, predictions, weights, seed)
        evaluated.append(Model(name, scores, verdict(scores, effect), effect, sample.tally.reliability, risk, guaranteed))
    pairs = [
        Pair(first, second, differences_between(deviations[first], deviations[second], level=level))
        for first, second in combinations(models, 2)
    ]
    return Study(
        models=evaluated,
        pairs=pairs,
        settings={
            "bins": bins,
            "level": level,
            "replicates": replicates,
            "seed": seed,
            "target_accuracy": target_accuracy,
            "kernel_width": settings.kernel_width,
            "weighted": weights is not None,
        },
        class_names=tuple(each.name for each in evaluated[0].scores.per_class),
        origin=dict(origin or {}),
    )


def _with_targets(probs: Array, targets: Array | None, weights: Array | None) -> Predictions:
    if targets is None:
        raise InvalidArgumentError("Expected `targets`, the true classes, beside class probabilities, but got none.")
    return as_predictions(probs, targets, weights)


def _guaranteed(request: GuaranteeRequest, predictions: Predictions, weights: Array | None, seed: int) -> Guarantees:
    if weights is not None:
        raise InvalidArgumentError(
            "Sets and thresholds are guaranteed for rows that all count the same, but there are weights. Leave them out."
        )
    if predictions.pairs:
        return certify_pairs(request, predictions.confidence, predictions.correct)
    return calibrate_guarantees(request, predictions.probs, predictions.targets, seed=seed)


def _model(model: Model, level: float) -> dict[str, Any]:
    scores, ends = model.scores, model.scores.intervals
    return {
        "name": model.name,
        "verdict": vars(model.verdict),
        "scores": {
            name: {"value": value, **(ends[name]._asdict() if name in ends else {"low": None, "high": None})}
            for name, value in scores.values.items()
        },
        "temperature": None if model.temperature is None else vars(model.temperature),
        "reliability": _bins(model.reliability, scores.kce_p_value, level),
        "risk_coverage": _thinned(model.risk_coverage),
        "per_class": [vars(each) for each in scores.per_class],
        "guarantees": None if model.guarantees is None else model.guarantees.to_dict([each.name for each in scores.per_class]),
    }


def _bins(bins: ReliabilityBins, p_value: float, level: float) -> list[dict[str, Any]]:
    columns = {
        "left": bins.edges[:-1],
        "right": bins.edges[1:],
        "count": bins.count,
        "share": bins.share,
        "confidence": bins.confidence,
        "accuracy": bins.accuracy,
        "band": torch.stack(bins.consistency_band(level), -1),
        "beyond_chance": beyond_chance(bins, p_value, level),
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    entries = [dict(zip(columns, row, strict=True)) for row in rows]
    return [entry if entry["share"] > 0 else entry | {"band": None} for entry in entries]


def _thinned(risk: RiskCoverage) -> dict[str, list[float]]:
    """At most `_POINTS` points of the curve, evenly spaced in coverage, with the first and the last."""
    wanted = torch.linspace(0, 1, _POINTS, dtype=torch.float64)
    index = torch.searchsorted(risk.coverage, wanted).clamp_max(len(risk.coverage) - 1).unique()
    return {name: getattr(risk, name)[index].tolist() for name in ("coverage", "risk", "threshold")}
