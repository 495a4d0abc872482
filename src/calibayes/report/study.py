"""Several classifiers on the same examples: scores, differences and verdicts, ready to be printed, written or drawn."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import torch

import calibayes
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError
from calibayes.metrics import Array, Difference, ReliabilityBins, RiskCoverage, Scores
from calibayes.metrics.bootstrap import draws
from calibayes.metrics.evaluate import EvaluationSettings, check_names, intervals_of, scores_of
from calibayes.metrics.intervals import ChanceDeviations
from calibayes.metrics.metric_values import values
from calibayes.metrics.paired_differences import between, movements
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
        name: what it is called.
        scores: every metric, with intervals.
        verdict: whether it can be trusted.
        mended: what temperature scaling would do; None where examples are too few to try.
        reliability: the bins of its reliability diagram.
        risk_coverage: its risk–coverage curve.
    """

    name: str
    scores: Scores
    verdict: Verdict
    mended: TemperatureEffect | None
    reliability: ReliabilityBins
    risk_coverage: RiskCoverage


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
        models: one by one.
        pairs: every two of them compared.
        settings: of the metrics and the bootstrap.
        class_names: what the classes are called.
        origin: what the report says about where the predictions came from.
    """

    models: list[Model]
    pairs: list[Pair]
    settings: dict[str, Any]
    class_names: tuple[str, ...]
    origin: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, text, lists and dicts that JSON has: NaN is None, and infinite numbers are text."""
        first = self.models[0].scores
        found = {
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
        cleaned: dict[str, Any] = as_json_numbers(found)
        return cleaned


def study(
    models: Mapping[str, Array | Predictions],
    targets: Array | None = None,
    *,
    class_names: Sequence[str] | None = None,
    weights: Array | None = None,
    logits: Mapping[str, Array] | None = None,
    bins: int = 15,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    target_accuracy: float = 0.95,
    origin: Mapping[str, Any] | None = None,
) -> Study:
    """Evaluate one or several classifiers on the same examples, and compare every two of them.

    Args:
        models: the class probabilities of each by name, shape ``[n, K]`` or one column for two classes; or `as_pairs`.
        targets: the true classes, integers of shape ``[n]``; not needed for pairs.
        class_names: what the classes are called, in the order of the columns.
        weights: how much each example counts.
        logits: the logits behind the probabilities by name, where they are known: for the temperature.
        bins: of the binned errors.
        level: of the intervals.
        replicates: how many times the examples are resampled.
        seed: of the resampling.
        target_accuracy: of the coverage.
        origin: ``command`` and ``files``, for the report.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1]]).expand(1000, 2)
        >>> found = study({"sure": probs}, torch.tensor([0] * 700 + [1] * 300), replicates=200)
        >>> print(found.models[0].verdict.text.split(" (")[0])
        Overconfident: it says 90 %, it is right 70 %
    """
    if not isinstance(models, Mapping) or not models:
        raise InvalidArgumentError(
            f"Expected `models` to be probabilities by name, like {{'mine': probs}}, but got {models!r:.60}."
        )
    settings = EvaluationSettings(bins, target_accuracy=target_accuracy, seed=seed)
    found: list[Model] = []
    moved: dict[str, dict[str, ChanceDeviations]] = {}
    shapes = set()
    for name, probs in models.items():
        predictions = probs if isinstance(probs, Predictions) else _with_targets(probs, targets, weights)
        shapes.add(predictions.classes)
        if len(shapes) > 1:
            raise InvalidProbabilitiesError(
                f"Expected the same classes for all models, but {name!r} has {predictions.classes}."
            )
        names = None if predictions.pairs else check_names(class_names, predictions.classes)
        sample = settings.sample(predictions, resample=True)
        measured = values(sample)
        told = draws(sample, measured, replicates, seed)
        scores = scores_of(sample, measured, intervals_of(sample, measured, told, level), level, names, pairs=predictions.pairs)
        if len(models) > 1:
            moved[name] = movements(told, level)
        effect = None
        if not isinstance(probs, Predictions) and targets is not None:
            own = None if logits is None else logits.get(name)
            effect = temperature_effect(probs, targets, weights=weights, logits=own, bins=bins, seed=seed)
        risk = curve(sample.cells, sample.tally.n)
        found.append(Model(name, scores, verdict(scores, effect), effect, sample.tally.reliability, risk))
    return Study(
        models=found,
        pairs=[Pair(a, b, between(moved[a], moved[b], level=level)) for a, b in combinations(models, 2)],
        settings={
            "bins": bins,
            "level": level,
            "replicates": replicates,
            "seed": seed,
            "target_accuracy": target_accuracy,
            "kernel_width": settings.kernel_width,
            "weighted": weights is not None,
        },
        class_names=tuple(each.name for each in found[0].scores.per_class),
        origin=dict(origin or {}),
    )


def _with_targets(probs: Array, targets: Array | None, weights: Array | None) -> Predictions:
    if targets is None:
        raise InvalidArgumentError("Expected `targets`, the true classes, beside class probabilities, but got none.")
    return as_predictions(probs, targets, weights)


def _model(model: Model, level: float) -> dict[str, Any]:
    scores, ends = model.scores, model.scores.intervals
    return {
        "name": model.name,
        "verdict": vars(model.verdict),
        "scores": {
            name: {
                "value": value,
                "low": ends[name].low if name in ends else None,
                "high": ends[name].high if name in ends else None,
            }
            for name, value in scores.values.items()
        },
        "temperature": None if model.mended is None else vars(model.mended),
        "reliability": _bins(model.reliability, level),
        "risk_coverage": _thinned(model.risk_coverage),
        "per_class": [vars(each) for each in scores.per_class],
    }


def _bins(bins: ReliabilityBins, level: float) -> list[dict[str, Any]]:
    low, high = bins.consistency_band(level)
    edges, shares = bins.edges.tolist(), bins.share.tolist()
    return [
        {
            "left": edges[index],
            "right": edges[index + 1],
            "count": int(bins.count[index]),
            "share": shares[index],
            "confidence": float(bins.confidence[index]),
            "accuracy": float(bins.accuracy[index]),
            "band": [float(low[index]), float(high[index])] if shares[index] > 0 else None,
        }
        for index in range(len(shares))
    ]


def _thinned(risk: RiskCoverage) -> dict[str, list[float]]:
    """At most `_POINTS` points of the curve, evenly over coverage, the first and the last among them."""
    wanted = torch.linspace(0, 1, _POINTS, dtype=torch.float64)
    index = torch.searchsorted(risk.coverage, wanted).clamp_max(len(risk.coverage) - 1).unique()
    return {name: getattr(risk, name)[index].tolist() for name in ("coverage", "risk", "threshold")}
