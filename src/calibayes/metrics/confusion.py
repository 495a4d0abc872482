"""The confusion matrix, and precision, recall and F1 of every class, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from calibayes.checks import fraction
from calibayes.metrics.intervals import Interval, wilson
from calibayes.metrics.prediction_arrays import Array, Predictions, as_predictions

__all__ = ["ClassRates", "ConfusedPair", "class_rates", "confusion_matrix", "most_confused"]


@dataclass(frozen=True)
class ClassRates:
    """How well one class is recognised; NaN where there is nothing to divide by.

    Attributes:
        support: the number of examples of this class, or their weight.
        predicted: the number of examples that were taken for it, or their weight.
        precision: the share of the class among the examples taken for it.
        recall: the share of its examples that were taken for it.
        f1: the harmonic mean of precision and recall.
        precision_interval: for the precision on other examples of the same kind; the others likewise.
        recall_interval: for the recall.
        f1_interval: for F1.
    """

    support: float
    predicted: float
    precision: float
    recall: float
    f1: float
    precision_interval: Interval
    recall_interval: Interval
    f1_interval: Interval


class ConfusedPair(NamedTuple):
    """A true class and another one that it was taken for.

    Attributes:
        true: the true class.
        predicted: the class that it was taken for.
        cases: how many examples, or their weight.
        share: their share of the examples of the true class.
    """

    true: int
    predicted: int
    cases: float
    share: float


def confusion_matrix(probs: Array, targets: Array, *, weights: Array | None = None, check: bool = True) -> Tensor:
    """Count the examples of every true class (row) by the class predicted for them (column); arguments as `accuracy`.

    The result ``[K, K]`` holds integers, or sums of weights if there are weights.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
        >>> confusion_matrix(probs, torch.tensor([0, 1, 1]))
        tensor([[1, 0],
                [1, 1]])
    """
    return _counts(as_predictions(probs, targets, weights, check=check))


def class_rates(
    probs: Array, targets: Array, *, weights: Array | None = None, level: float = 0.95, check: bool = True
) -> tuple[ClassRates, ...]:
    r"""Return precision, recall and F1 of every class, with intervals; other arguments as `accuracy`.

    Precision is the share of hits among the examples taken for a class, recall that among the examples of the class: both have
    Wilson's interval. F1 is $2J/(1+J)$, where $J$ is the share of hits among the examples that either are of the class or were
    taken for it, so the ends of Wilson's interval of $J$ become those of F1.

    Args:
        level: the probability with which an interval holds the true value.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
        >>> first, second = class_rates(probs, torch.tensor([0, 1, 1]))
        >>> first.precision, first.recall, second.precision, second.recall
        (0.5, 1.0, 1.0, 0.5)
        >>> [round(end, 3) for end in second.recall_interval]
        [0.095, 0.905]
    """
    fraction("level", level)
    predictions = as_predictions(probs, targets, weights, check=check)
    counts = _counts(predictions).double()
    squares = counts if predictions.weights is None else _sums(predictions, predictions.weights.square())
    return tuple(_rates(counts, squares, each, level) for each in range(predictions.classes))


def most_confused(counts: Tensor, most: int | None = None) -> list[ConfusedPair]:
    """Return the pairs of classes that are confused most often, from a confusion matrix; pairs without a case are left out.

    Args:
        counts: the matrix ``[K, K]``, true classes as rows.
        most: how many pairs at most.

    Examples:
        >>> most_confused(torch.tensor([[8, 2], [1, 3]]))
        [ConfusedPair(true=0, predicted=1, cases=2.0, share=0.2), ConfusedPair(true=1, predicted=0, cases=1.0, share=0.25)]
    """
    wrong = counts.double() * (1 - torch.eye(len(counts), dtype=torch.float64))
    order = wrong.flatten().argsort(descending=True, stable=True)[: int((wrong > 0).sum())][:most].tolist()
    support = counts.double().sum(1).tolist()
    pairs: Sequence[tuple[int, int]] = [divmod(place, len(counts)) for place in order]
    return [ConfusedPair(i, j, float(wrong[i, j]), float(wrong[i, j]) / support[i]) for i, j in pairs]


def _counts(predictions: Predictions) -> Tensor:
    return _sums(predictions, predictions.weights)


def _sums(predictions: Predictions, weights: Tensor | None) -> Tensor:
    classes = predictions.classes
    places = predictions.targets * classes + predictions.decision
    return torch.bincount(places, weights, minlength=classes * classes).view(classes, classes)


def _rates(counts: Tensor, squares: Tensor, place: int, level: float) -> ClassRates:
    hits, support, predicted = (float(part) for part in (counts[place, place], counts[place].sum(), counts[:, place].sum()))
    square, support_square, predicted_square = (
        float(part) for part in (squares[place, place], squares[place].sum(), squares[:, place].sum())
    )
    recall, recall_ends = _share(hits, support, support_square, level)
    precision, precision_ends = _share(hits, predicted, predicted_square, level)
    either, either_square = support + predicted - hits, support_square + predicted_square - square
    overlap, ends = _share(hits, either, either_square, level)
    f1_ends = Interval(*(2 * end / (1 + end) for end in ends))
    f1 = 2 * overlap / (1 + overlap)
    return ClassRates(support, predicted, precision, recall, f1, precision_ends, recall_ends, f1_ends)


def _share(hits: float, total: float, total_square: float, level: float) -> tuple[float, Interval]:
    """A share with Wilson's interval; weighted examples count as fewer equal ones (Kish)."""
    if total <= 0:
        return math.nan, Interval(math.nan, math.nan)
    return hits / total, wilson(hits / total, total**2 / total_square, level)
