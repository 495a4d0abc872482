"""The coverage and the size of prediction sets on labelled examples, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from calibayes.acting.acting_inputs import as_tensor
from calibayes.acting.exact_bounds import clopper_pearson
from calibayes.checks import check_targets, fraction
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.intervals import Interval
from calibayes.metrics.prediction_arrays import Array

__all__ = ["SetCoverage", "set_coverage"]


@dataclass(frozen=True)
class SetCoverage:
    """The coverage and the size of prediction sets.

    Attributes:
        coverage: the share of sets that hold the label.
        coverage_interval: Clopper and Pearson's, which is exact.
        mean_size: the mean number of classes in a set.
        mean_size_interval: Student's, which is good for some dozens of sets or more.
        size_counts: how many sets have 0, 1, 2, … K classes.
        singletons: the share of sets with one class.
        singletons_interval: Clopper and Pearson's.
        class_coverage: the coverage of each true class; NaN without examples of it.
        class_intervals: Clopper and Pearson's, of each class by itself.
        level: of the intervals.
    """

    coverage: float
    coverage_interval: Interval
    mean_size: float
    mean_size_interval: Interval
    size_counts: tuple[int, ...]
    singletons: float
    singletons_interval: Interval
    class_coverage: tuple[float, ...]
    class_intervals: tuple[Interval, ...]
    level: float


def set_coverage(sets: Array, labels: Array, level: float = 0.95) -> SetCoverage:
    """Measure the coverage and the size of prediction sets on examples that did not calibrate them.

    Args:
        sets: booleans ``[n, K]``, as `PredictionSets.predict` returns them.
        labels: the true classes.
        level: of the intervals.

    Examples:
        >>> measured = set_coverage(torch.tensor([[True, False], [True, True], [True, False]]), torch.tensor([0, 1, 1]))
        >>> round(measured.coverage, 3), round(measured.mean_size, 3), measured.size_counts
        (0.667, 1.333, (0, 2, 1))
        >>> [round(end, 3) for end in measured.coverage_interval]
        [0.094, 0.992]
    """
    fraction("level", level)
    mask, targets = as_tensor("sets", sets), as_tensor("labels", labels)
    if mask.dtype != torch.bool or mask.dim() != 2 or not mask.numel():
        raise InvalidArgumentError(f"Expected `sets` to be booleans [n, K], but got {mask.dtype} of shape {list(mask.shape)}.")
    check_targets(targets, mask, "sets")
    targets = targets.long()
    n, classes = mask.shape
    hits, sizes = mask.gather(-1, targets[:, None])[:, 0], mask.sum(-1)
    of_class = [hits[targets == k] for k in range(classes)]
    ones = int((sizes == 1).sum())
    return SetCoverage(
        coverage=float(hits.double().mean()),
        coverage_interval=clopper_pearson(int(hits.sum()), n, level),
        mean_size=float(sizes.double().mean()),
        mean_size_interval=_students(sizes.double(), level, classes),
        size_counts=tuple(torch.bincount(sizes, minlength=classes + 1).tolist()),
        singletons=ones / n,
        singletons_interval=clopper_pearson(ones, n, level),
        class_coverage=tuple(float(each.double().mean()) for each in of_class),
        class_intervals=tuple(clopper_pearson(int(each.sum()), len(each), level) for each in of_class),
        level=level,
    )


def _students(values: Tensor, level: float, most: int) -> Interval:
    """Student's interval of a mean; all that is possible from a single value."""
    from scipy.special import stdtrit

    n = len(values)
    if n < 2:
        return Interval(0.0, float(most))
    half = float(stdtrit(n - 1, (1 + level) / 2)) * float(values.std()) / math.sqrt(n)
    mean = float(values.mean())
    return Interval(max(0.0, mean - half), min(float(most), mean + half))
