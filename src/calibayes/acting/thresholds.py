"""Confidence thresholds with a guarantee: above them, decisions are right as often as asked, with a stated certainty."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from torch import Tensor

from calibayes.acting.acting_inputs import (
    coarser_type,
    exceeds,
    read_correct,
    read_labelled,
    read_numbers,
    read_probabilities,
)
from calibayes.acting.exact_bounds import clopper_pearson, error_free_rows
from calibayes.acting.risk_tests import binomial_p_value, first_tests, walk_down
from calibayes.checked_fields import Fields
from calibayes.checks import fraction
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.intervals import Interval
from calibayes.metrics.prediction_arrays import Array
from calibayes.predictive import Predictive
from calibayes.wording import counted, joined

__all__ = ["ClassThresholds", "Threshold", "certify_class_thresholds", "certify_threshold"]

Measure = Literal["accuracy", "precision"]

_KIND, _CLASSES_KIND = "threshold", "class-thresholds"


@dataclass(frozen=True)
class Threshold:
    """A certified confidence threshold, or the answer that none can be certified; `certify_threshold` makes it.

    Attributes:
        value: decisions of a confidence *above* it are made; ``None`` if no threshold can be certified.
        accuracy: the accuracy (or precision) among the decisions made that was asked for.
        certainty: the probability, over calibration samples, that the accuracy is reached.
        rows: the number of calibration rows.
        answered: how many of them lie above the threshold.
        errors: how many of these were wrong.
        measure: ``"accuracy"``, or ``"precision"`` of the decisions for one class.
    """

    value: float | None
    accuracy: float
    certainty: float
    rows: int
    answered: int
    errors: int
    measure: Measure = "accuracy"

    @classmethod
    def fit(cls, probs: Array | Predictive, labels: Array, accuracy: float = 0.95, certainty: float = 0.9) -> Threshold:
        """Certify a threshold on the largest probability, from probabilities ``[n, K]`` and true classes."""
        values, targets = read_labelled(probs, labels)
        confidence, decision = values.max(-1)
        return certify_threshold(confidence.clamp_max(1.0), decision == targets, accuracy, certainty)

    @property
    def certified(self) -> bool:
        """True if there is a threshold."""
        return self.value is not None

    @property
    def coverage(self) -> float:
        """The share of calibration rows that is answered; 0 without a threshold."""
        return self.answered / self.rows if self.rows else 0.0

    def coverage_interval(self, level: float = 0.95) -> Interval:
        """Clopper and Pearson's interval of the coverage, for the threshold as it is."""
        return clopper_pearson(self.answered, self.rows, level)

    @property
    def rows_needed(self) -> int:
        """The smallest number of rows above a threshold, without an error, that can certify it; it may take more."""
        return error_free_rows(self.accuracy, self.certainty)

    def answers(self, confidence: Array) -> Tensor:
        """True where a decision is made."""
        values = read_numbers("confidence", confidence, unit=True)
        return exceeds(values, values.new_tensor(2.0 if self.value is None else self.value), coarser_type(confidence))

    @property
    def statement(self) -> str:
        """What is certified, or what it would take, in words."""
        article = "an" if self.measure == "accuracy" else "a"
        target = f"{self.measure} of {100 * self.accuracy:.4g} % with certainty {100 * self.certainty:.4g} %"
        if self.value is None:
            return (
                f"No threshold can be certified for {article} {target}: {self._obstacle} More calibration rows (`--set-aside` "
                f"in `train`) or a lower {self.measure} or certainty may help."
            )
        which = f"Decisions of a confidence above {self.value:.6g}" if self.value > 0 else "All decisions"
        wrong = f"{self.errors:,} {'was' if self.errors == 1 else 'were'} wrong"
        return (
            f"{which} have at least the asked {target}. In the calibration rows these "
            f"are {self.answered:,} of {self.rows:,} ({100 * self.coverage:.1f} %), of which {wrong}."
        )

    @property
    def _obstacle(self) -> str:
        if self.rows < self.rows_needed:
            most = (1 - self.certainty) ** (1 / self.rows) if self.rows else 0.0
            shown = f"; {self.rows:,} can show at most {math.floor(1000 * most) / 10:g} %" if most else ""
            return (
                f"there {'is' if self.rows == 1 else 'are'} only {counted(self.rows, 'row')}. It takes at least "
                f"{self.rows_needed:,} error-free rows above a threshold to certify it{shown}."
            )
        starts = first_tests(self.rows, _least(self.accuracy), 1 - self.accuracy, 1 - self.certainty)
        counts, errors = (joined([f"{number:,}" for number in numbers]) for numbers in zip(*starts, strict=True))
        several = len(starts) > 1
        return (
            f"too many of the most confident rows are wrong. Ties aside, the tests start at the most confident {counts} of "
            f"{self.rows:,} rows, {'numbers' if several else 'a number'} fixed in advance, of which at most {errors} may be "
            f"wrong{', respectively' if several else ''}."
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values that JSON can hold."""
        return {"kind": _KIND, **asdict(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild what `to_dict` described."""
        return cls._of(Fields.described(values, _KIND))

    @classmethod
    def _of(cls, fields: Fields) -> Self:
        rows = fields.size("rows", 0)
        answered = fields.size("answered", 0, rows)
        return cls(
            value=None if fields.is_none("value") else fields.number("value", least=0),
            accuracy=fields.fraction("accuracy"),
            certainty=fields.fraction("certainty"),
            rows=rows,
            answered=answered,
            errors=fields.size("errors", 0, answered),
            measure=fields.text("measure", get_args(Measure)),  # type: ignore[arg-type]
        )


@dataclass(frozen=True)
class ClassThresholds:
    """A threshold for the decisions of each class; all hold together with the certainty.

    Attributes:
        thresholds: one for each class.
        certainty: the probability that every one of them holds.
    """

    thresholds: tuple[Threshold, ...]
    certainty: float

    @property
    def values(self) -> list[float | None]:
        """The threshold of each class; ``None`` for a class without one, which is never decided."""
        return [each.value for each in self.thresholds]

    @property
    def coverage(self) -> float:
        """The share of calibration rows that is answered."""
        return sum(each.answered for each in self.thresholds) / max(1, sum(each.rows for each in self.thresholds))

    @property
    def together(self) -> str:
        """Why each class has a higher certainty than was asked for, in words."""
        return (
            f"Each class has a threshold of its own, with a higher certainty, so that all {len(self.thresholds)} hold together "
            f"with certainty {100 * self.certainty:.4g} %."
        )

    @property
    def statement(self) -> str:
        """What is certified for each class, in words."""
        return "\n".join((self.together, *(f"Class {index}: {each.statement}" for index, each in enumerate(self.thresholds))))

    def answers(self, probs: Array | Predictive) -> Tensor:
        """True where a decision is made, for probabilities ``[n, K]``."""
        values = read_probabilities(probs)
        if values.shape[1] != len(self.thresholds):
            raise InvalidArgumentError(f"Expected {len(self.thresholds)} columns in `probs`, but got {values.shape[1]}.")
        confidence, decision = values.max(-1)
        limits = values.new_tensor([2.0 if each is None else each for each in self.values])[decision]
        return exceeds(confidence.clamp_max(1.0), limits, coarser_type(probs.probs if isinstance(probs, Predictive) else probs))

    def to_dict(self) -> dict[str, Any]:
        """All of it in plain values that JSON can hold."""
        return {"kind": _CLASSES_KIND, "thresholds": [each.to_dict() for each in self.thresholds], "certainty": self.certainty}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild what `to_dict` described."""
        fields = Fields.described(values, _CLASSES_KIND)
        each = fields.each("thresholds")
        return cls(tuple(Threshold._of(one) for one in each), fields.fraction("certainty"))


def certify_threshold(confidence: Array, correct: Array, accuracy: float = 0.95, certainty: float = 0.9) -> Threshold:
    r"""Find the lowest threshold above which decisions are right often enough, with a guarantee.

    With a probability of at least ``certainty`` over calibration samples, decisions of a confidence above the threshold are
    right with a probability of at least ``accuracy``, or no threshold is returned. The tests are exact, and all thresholds
    looked at are paid for; `calibayes.acting.risk_tests` says how. It holds if new examples come from where the calibration
    rows came from, and if accuracy, once below the target, stays below it at lower thresholds.

    Args:
        confidence: one number in 0 … 1 per calibration row, which neither the classifier nor its scaling has seen.
        correct: whether the decision of each row was right.
        accuracy: to be reached among the decisions that are made.
        certainty: of the guarantee, $1 - \delta$.

    Examples:
        >>> confidence = torch.linspace(0.5, 1, 1000)
        >>> threshold = certify_threshold(confidence, confidence > 0.7, accuracy=0.95, certainty=0.9)
        >>> round(threshold.value, 2), round(threshold.coverage, 2)
        (0.69, 0.62)
        >>> print(certify_threshold(confidence[-30:], confidence[-30:] > 0.7).statement)
        No threshold can be certified for an accuracy of 95 % with certainty 90 %: there are only 30 rows. It takes at least 45
        error-free rows above a threshold to certify it; 30 can show at most 92.6 %. More calibration rows (`--set-aside` in
        `train`) or a lower accuracy or certainty may help.
    """
    accuracy, certainty = fraction("accuracy", accuracy), fraction("certainty", certainty)
    values = read_numbers("confidence", confidence, unit=True)
    right = read_correct(correct, len(values))
    return _certified(values, right, accuracy, certainty, "accuracy")


def certify_class_thresholds(
    probs: Array | Predictive, labels: Array, precision: float = 0.95, certainty: float = 0.9
) -> ClassThresholds:
    r"""Find for each class the lowest threshold above which decisions for it are right often enough, with a guarantee.

    All classes hold together with the certainty: each gets $\delta / K$ of the budget $\delta$ = ``1 - certainty``.

    Args:
        probs: class probabilities ``[n, K]`` of calibration rows, which neither the classifier nor its scaling has seen.
        labels: the true classes.
        precision: to be reached among the decisions for each class.
        certainty: of all guarantees together.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1]] * 80 + [[0.2, 0.8]] * 40)
        >>> thresholds = certify_class_thresholds(probs, torch.tensor([0] * 80 + [1] * 40))
        >>> thresholds.values, thresholds.thresholds[1].rows_needed
        ([0.0, None], 59)
    """
    precision, certainty = fraction("precision", precision), fraction("certainty", certainty)
    values, targets = read_labelled(probs, labels)
    confidence, decision = values.clamp_max(1.0).max(-1)
    each = 1 - (1 - certainty) / values.shape[1]
    return ClassThresholds(
        tuple(
            _certified(confidence[decision == k], targets[decision == k] == k, precision, each, "precision")
            for k in range(values.shape[1])
        ),
        certainty,
    )


def _certified(
    confidence: Tensor,
    right: Tensor,
    accuracy: float,
    certainty: float,
    measure: Measure,
) -> Threshold:
    scores, correct = confidence.numpy(), right.numpy()
    limit, budget = 1 - accuracy, 1 - certainty
    order = np.argsort(-scores, kind="stable")
    errors = np.concatenate(([0], np.cumsum(~correct[order])))
    certified = walk_down(
        scores,
        lambda _, answered, __: binomial_p_value(int(errors[answered]), answered, limit),
        _least(accuracy),
        limit,
        budget,
    )
    if certified is None:
        return Threshold(None, accuracy, certainty, len(scores), 0, 0, measure)
    wrong = int(errors[certified.answered])
    return Threshold(certified.threshold, accuracy, certainty, len(scores), certified.answered, wrong, measure)


def _least(accuracy: float) -> Callable[[float], int]:
    """The smallest number of rows that can certify an accuracy with part of the budget."""
    return lambda part: error_free_rows(accuracy, 1 - part)
