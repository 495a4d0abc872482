"""The area under the ROC curve of two classes, with an interval."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor

from calibayes.checks import fraction
from calibayes.errors import InvalidProbabilitiesError
from calibayes.metrics.intervals import Interval
from calibayes.metrics.prediction_arrays import Array, as_predictions

__all__ = ["roc_auc", "roc_auc_interval"]

_HALVINGS = 60


class _Placements(NamedTuple):
    """For each example of a class, the share of the other class that it is ranked right against, and the weights."""

    positive: Tensor
    positive_mass: Tensor
    negative: Tensor
    negative_mass: Tensor

    @property
    def area(self) -> float:
        """The AUC; NaN without examples of both classes."""
        if not len(self.positive) or not len(self.negative):
            return math.nan
        return float((self.positive * self.positive_mass).sum() / self.positive_mass.sum())


def roc_auc(probs: Array, targets: Array, *, weights: Array | None = None, check: bool = True) -> float:
    r"""The area under the ROC curve: how often an example of class 1 gets a higher probability of it than one of class 0.

    A tie counts as half. NaN if one of the classes does not occur. Other arguments as `accuracy`.

    Args:
        probs: probabilities of two classes, shape ``[n, 2]``, or those of class 1 alone. For one class of several against the
            rest, pass ``probs[:, k]`` and ``(targets == k).long()``.

    Examples:
        >>> roc_auc(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        0.75
    """
    return _placements(probs, targets, weights, check).area


def roc_auc_interval(
    probs: Array, targets: Array, *, weights: Array | None = None, level: float = 0.95, check: bool = True
) -> Interval:
    r"""Return an interval for the AUC on other examples of the same kind; arguments as `roc_auc`.

    The variance is that of DeLong, DeLong and Clarke-Pearson (1988), on the scale of $\log(A/(1-A))$, which keeps the interval
    between 0 and 1. Where every pair is ranked right, or every pair wrong, that variance is zero, and the interval is the
    score interval with the variance of Hanley and McNeil (1982) instead.

    Args:
        level: the probability with which the interval holds the true value.

    Examples:
        >>> low, high = roc_auc_interval(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        >>> 0 < low < 0.75 < high < 1
        True
    """
    z = NormalDist().inv_cdf((1 + fraction("level", level)) / 2)
    found = _placements(probs, targets, weights, check)
    area = found.area
    masses = (found.positive_mass, found.negative_mass)
    if math.isnan(area) or min(map(len, masses)) < 2:
        return Interval(math.nan, math.nan)
    variance = sum(
        _variance_of_mean(values, mass, area) for values, mass in zip((found.positive, found.negative), masses, strict=True)
    )
    if not 0 < area < 1 or variance <= 0:
        sizes = [float(mass.sum() ** 2 / mass.square().sum()) for mass in masses]
        return _score_interval(area, sizes[0], sizes[1], z)
    middle, half = math.log(area / (1 - area)), z * math.sqrt(variance) / (area * (1 - area))
    return Interval(_logistic(middle - half), _logistic(middle + half))


def _placements(probs: Array, targets: Array, weights: Array | None, check: bool) -> _Placements:
    predictions = as_predictions(probs, targets, weights, check=check)
    if predictions.classes != 2:
        raise InvalidProbabilitiesError(
            f"Expected probabilities of two classes, but got {predictions.classes}. For one class `k` against the rest, pass "
            "`probs[:, k]` and `(targets == k).long()`."
        )
    score, positive = predictions.probs[:, 1], predictions.targets == 1
    masses, scores = [predictions.mass[positive], predictions.mass[~positive]], [score[positive], score[~positive]]
    below = _share_below(scores[0], scores[1], masses[1])
    above = 1 - _share_below(scores[1], scores[0], masses[0])
    return _Placements(below, masses[0], above, masses[1])


def _share_below(scores: Tensor, others: Tensor, mass: Tensor) -> Tensor:
    """For each score, the share of the others that are lower, half of those that are equal included."""
    ordered, order = others.sort()
    sums = torch.cat((mass.new_zeros(1), mass[order].cumsum(0)))
    lower, not_higher = (torch.searchsorted(ordered, scores.contiguous(), right=right) for right in (False, True))
    return (sums[lower] + sums[not_higher]) / (2 * sums[-1])


def _variance_of_mean(values: Tensor, mass: Tensor, mean: float) -> float:
    n = len(values)
    return float((mass.square() * (values - mean).square()).sum() / mass.sum() ** 2 * n / (n - 1))


def _score_interval(area: float, positive: float, negative: float, z: float) -> Interval:
    """The areas from which the observed one is at most ``z`` standard errors away."""

    def surprising(truth: float) -> bool:
        first, second = truth / (2 - truth), 2 * truth**2 / (1 + truth)
        variance = truth * (1 - truth) + (positive - 1) * (first - truth**2) + (negative - 1) * (second - truth**2)
        return abs(area - truth) > z * math.sqrt(max(variance, 0) / (positive * negative))

    ends = []
    for outer in (0.0, 1.0):
        inner = area
        for _ in range(_HALVINGS if outer != area else 0):
            middle = (inner + outer) / 2
            inner, outer = (inner, middle) if surprising(middle) else (middle, outer)
        ends.append(inner)
    return Interval(*ends)


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))
