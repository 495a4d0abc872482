"""Calibrate all that is asked of predictions at once, and say in numbers and words what holds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor

from calibayes.acting.acting_inputs import ActingWarning, read_labelled, read_numbers, read_probabilities
from calibayes.acting.cost_thresholds import CostThreshold, certify_cost
from calibayes.acting.decisions import CostDecisions, decide_by_cost
from calibayes.acting.exact_bounds import clopper_pearson
from calibayes.acting.guarantee_request import CostTable, GuaranteeRequest
from calibayes.acting.prediction_sets import PredictionSets
from calibayes.acting.set_coverage import SetCoverage, set_coverage
from calibayes.acting.thresholds import ClassThresholds, Threshold, certify_class_thresholds, certify_threshold
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.intervals import Interval
from calibayes.metrics.prediction_arrays import Array
from calibayes.randomness import derived_seed

__all__ = ["Guarantees", "calibrate_guarantees", "certify_pairs", "decisions_by_cost"]

AnyThreshold = Threshold | ClassThresholds | CostThreshold


@final
@dataclass(frozen=True, eq=False)
class Guarantees:
    """Calibrated sets and a certified threshold; `calibrate_guarantees` makes them.

    Attributes:
        request: what was asked for.
        rows: the number of calibration rows.
        sets: for prediction sets; ``None`` if not asked for.
        measured: the coverage and size of sets on the same rows, each with a threshold from the other half of them.
        threshold: of confidence, of the confidence in each class, or of the expected cost; ``None`` if not asked for.
        notes: such as that there are too few rows.
    """

    request: GuaranteeRequest
    rows: int
    sets: PredictionSets | None
    measured: SetCoverage | None
    threshold: AnyThreshold | None
    notes: tuple[str, ...] = ()

    def answers(self, probs: Array) -> Tensor | None:
        """True where the certified threshold allows a decision, for probabilities ``[n, K]``; ``None`` without a threshold."""
        if isinstance(self.threshold, CostThreshold):
            assert self.request.costs is not None
            return self.threshold.answers(decisions_by_cost(probs, self.request.costs).expected_cost)
        if isinstance(self.threshold, ClassThresholds):
            return self.threshold.answers(probs)
        return None if self.threshold is None else self.threshold.answers(read_probabilities(probs).amax(-1).clamp_max(1.0))

    def widened(self, margin: float) -> Guarantees:
        """Return guarantees that still hold if predictions are computed again with rounding errors of at most ``margin``.

        Where many rows have the same prediction, a last digit would otherwise decide for all of them.
        """
        sets = None if self.sets is None else replace(self.sets, thresholds=self.sets.thresholds + margin)
        threshold = self.threshold
        if isinstance(threshold, ClassThresholds):
            threshold = replace(threshold, thresholds=tuple(_stricter(each, margin) for each in threshold.thresholds))
        elif isinstance(threshold, Threshold):
            threshold = _stricter(threshold, margin)
        elif threshold is not None and threshold.value is not None:
            assert self.request.costs is not None
            largest = max(abs(cost) for row in self.request.costs.costs for cost in row)
            threshold = replace(threshold, value=threshold.value - margin * largest)
        return replace(self, sets=sets, threshold=threshold)

    def statements(self, class_names: Sequence[str] | None = None) -> list[str]:
        """What is guaranteed, in sentences."""
        sentences = [] if self.sets is None else [self.sets.statement]
        if isinstance(self.threshold, ClassThresholds):
            names = class_names or [str(place) for place in range(len(self.threshold.thresholds))]
            return [
                *sentences,
                self.threshold.together,
                *(f"{name}: {each.statement}" for name, each in zip(names, self.threshold.thresholds, strict=True)),
            ]
        return sentences if self.threshold is None else [*sentences, self.threshold.statement]

    def to_dict(self, class_names: Sequence[str] | None = None) -> dict[str, Any]:
        """All numbers and statements in plain values; NaN for those that are unknown."""
        return {
            "rows": self.rows,
            "sets": None if self.sets is None else self._sets_dict(),
            "threshold": None if self.threshold is None else self._threshold_dict(class_names),
            "notes": list(self.notes),
        }

    def _sets_dict(self) -> dict[str, Any]:
        assert self.sets is not None
        found: dict[str, Any] = {
            "level": self.sets.level,
            "score": self.sets.score.name,
            "by_class": self.sets.per == "class",
            "statement": self.sets.statement,
            "measured": None,
        }
        if self.measured is not None:
            ends = self.measured
            found["measured"] = {
                "coverage": _with_ends(ends.coverage, ends.coverage_interval),
                "mean_size": _with_ends(ends.mean_size, ends.mean_size_interval),
                "one_class": _with_ends(ends.singletons, ends.singletons_interval),
                "size_counts": list(ends.size_counts),
                "class_coverage": list(ends.class_coverage),
            }
        return found

    def _threshold_dict(self, class_names: Sequence[str] | None) -> dict[str, Any]:
        threshold, asked = self.threshold, self.request.certify
        assert threshold is not None
        assert asked is not None
        if isinstance(threshold, ClassThresholds):
            value, values = None, threshold.values
            answered = sum(each.answered for each in threshold.thresholds)
        else:
            value, values, answered = threshold.value, None, threshold.answered
        return {
            "measure": asked.measure,
            "target": asked.target,
            "certainty": asked.certainty,
            "value": value,
            "class_values": values,
            "answered": answered,
            "coverage": _with_ends(threshold.coverage, clopper_pearson(answered, self.rows)),
            "statements": self.statements(class_names)[0 if self.sets is None else 1 :],
        }


def calibrate_guarantees(request: GuaranteeRequest, probs: Array, labels: Array, *, seed: int = 0) -> Guarantees:
    """Calibrate what is asked for on rows that neither the classifier nor a scaling of its probabilities has seen.

    Args:
        request: sets and a threshold, either or both.
        probs: class probabilities ``[n, K]`` of calibration rows.
        labels: the true classes.
        seed: of the halves that coverage is measured on, and of the order of rows for costs.

    Examples:
        >>> generator = torch.Generator().manual_seed(0)
        >>> probs = (3 * torch.randn(500, 3, generator=generator)).softmax(-1)
        >>> labels = torch.multinomial(probs, 1, generator=generator)[:, 0]
        >>> found = calibrate_guarantees(GuaranteeRequest(sets=0.9), probs, labels)
        >>> 0.85 < found.measured.coverage < 0.95, 1 < found.measured.mean_size < 2
        (True, True)
    """
    values, targets = read_labelled(probs, labels)
    sets = measured = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ActingWarning)
        if request.sets is not None:
            sets = _sets(request, values, targets)
    notes = tuple(str(each.message) for each in caught if issubclass(each.category, ActingWarning))
    if sets is not None and len(targets) > 1:
        measured = _measured(request, values, targets, seed)
    return Guarantees(request, len(targets), sets, measured, _threshold(request, values, targets, seed), notes)


def certify_pairs(request: GuaranteeRequest, confidence: Array, correct: Array) -> Guarantees:
    """Certify a threshold from confidences and whether each answer was right, where probabilities of classes are unknown.

    Examples:
        >>> from calibayes.acting.guarantee_request import CertifyRequest
        >>> confidence = torch.linspace(0.5, 1, 1000)
        >>> request = GuaranteeRequest(certify=CertifyRequest("accuracy", 0.95))
        >>> round(certify_pairs(request, confidence, confidence > 0.7).threshold.value, 2)
        0.69
    """
    if request.sets is not None:
        raise InvalidArgumentError(
            "Prediction sets need the probabilities of all classes, but there are only confidences. Leave --sets out, or pass "
            "predictions with a column for each class."
        )
    if request.certify is not None and request.certify.measure != "accuracy":
        raise InvalidArgumentError(
            f"To certify a {request.certify.measure}, the probabilities of all classes are needed, but there are only "
            "confidences. Use --certify accuracy=…."
        )
    threshold = None
    if request.certify is not None:
        threshold = certify_threshold(confidence, correct, request.certify.target, request.certify.certainty)
    return Guarantees(request, len(read_numbers("confidence", confidence, unit=True)), None, None, threshold)


def decisions_by_cost(probs: Array, table: CostTable) -> CostDecisions:
    """Choose the action with the least expected cost for each row of probabilities ``[n, K]``."""
    return decide_by_cost(probs, table.costs, table.abstain_cost, actions=table.actions)


def _sets(request: GuaranteeRequest, probs: Tensor, targets: Tensor) -> PredictionSets:
    assert request.sets is not None
    return PredictionSets.fit(probs, targets, request.sets, request.score, request.by_class)


def _measured(request: GuaranteeRequest, probs: Tensor, targets: Tensor, seed: int) -> SetCoverage:
    """Measure the sets of each half of the rows by a threshold from the other half."""
    generator = torch.Generator().manual_seed(derived_seed(seed, "halves of calibration rows"))
    first, second = torch.randperm(len(targets), generator=generator).tensor_split(2)
    found = torch.zeros_like(probs, dtype=torch.bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ActingWarning)  # half of the rows may be too few where all are enough
        for fitted, measured in ((first, second), (second, first)):
            found[measured] = _sets(request, probs[fitted], targets[fitted]).predict(probs[measured])
    return set_coverage(found, targets)


def _threshold(request: GuaranteeRequest, probs: Tensor, targets: Tensor, seed: int) -> AnyThreshold | None:
    asked = request.certify
    if asked is None:
        return None
    if asked.measure == "accuracy":
        return Threshold.fit(probs, targets, asked.target, asked.certainty)
    if asked.measure == "precision":
        return certify_class_thresholds(probs, targets, asked.target, asked.certainty)
    assert request.costs is not None
    return certify_cost(probs, targets, request.costs.costs, asked.target, asked.certainty, seed=seed)


def _stricter(threshold: Threshold, margin: float) -> Threshold:
    # At zero everything is decided, with or without rounding.
    return replace(threshold, value=threshold.value + margin) if threshold.value else threshold


def _with_ends(value: float, ends: Interval) -> dict[str, float]:
    return {"value": value, "low": ends.low, "high": ends.high}
