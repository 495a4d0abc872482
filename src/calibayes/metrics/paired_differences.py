"""Differences between two classifiers on the same examples, with intervals."""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import torch

from calibayes.checks import fraction
from calibayes.errors import InvalidProbabilitiesError
from calibayes.metrics.bins import DEFAULT_BINS
from calibayes.metrics.bootstrap import draws
from calibayes.metrics.catalogue import METRICS
from calibayes.metrics.evaluate import EvaluationSettings
from calibayes.metrics.intervals import ChanceDeviations, Draws, quantiles
from calibayes.metrics.kernel_errors import WIDTH
from calibayes.metrics.metric_values import values
from calibayes.metrics.prediction_arrays import Array, as_predictions
from calibayes.threads import in_one_thread

__all__ = ["Difference", "chance_deviations", "differences", "differences_between"]

_ALIKE = 0.8  # the correlation above which chance moves two errors alike


class Difference(NamedTuple):
    """The difference in a metric: the first classifier's value minus the second's.

    Attributes:
        value: first minus second, each without the amount that chance adds to it.
        low: the lower end of its interval.
        high: the upper end.
    """

    value: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """True if the interval excludes zero: the sign of the difference is known."""
        return self.low > 0 or self.high < 0


def differences(
    probs_a: Array,
    probs_b: Array,
    targets: Array,
    bins: int = DEFAULT_BINS,
    *,
    weights: Array | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    target_accuracy: float = 0.95,
    k: int | None = None,
    kernel_width: float = WIDTH,
    check: bool = True,
) -> dict[str, Difference]:
    r"""Return the difference of two classifiers in every metric, with paired bootstrap intervals.

    The same examples are resampled for both, so an example that is hard for both cancels out: the interval is narrower
    than those of `evaluate` suggest. With $d_b$ the deviations of replicates it goes from
    $\hat\Delta - q_{1-\alpha/2}(d^A_b - d^B_b)$ to $\hat\Delta - q_{\alpha/2}(d^A_b - d^B_b)$.

    Each calibration error counts without the bias that chance gives it (see `calibayes.metrics.intervals`). The size of that
    bias depends on the true error, which is not known: the interval holds those of the hypotheses at both ends and in the
    middle of each classifier's own interval, for all pairs of hypotheses, or where chance moves both errors alike
    (correlation above 0.8) for pairs of the same place. Where a classifier makes fewer than about ten errors, resampling knows
    too little about them, and differences of calibration errors are not reliable.

    Args:
        probs_a: class probabilities of the first, as in `evaluate`, which explains the other arguments too.
        probs_b: those of the second, for the same examples in the same order.

    Examples:
        >>> sure = torch.tensor([[0.99, 0.01]]).expand(300, 2)
        >>> results = differences(sure, torch.full((300, 2), 0.5), torch.tensor([0, 1, 1] * 100), replicates=200)
        >>> results["nll"].clear, results["nll"].value > 2
        (True, True)
    """
    fraction("level", level)
    settings = EvaluationSettings(bins, target_accuracy=target_accuracy, k=k, kernel_width=kernel_width, seed=seed)
    first, second = (as_predictions(probs, targets, weights, check=check) for probs in (probs_a, probs_b))
    if first.probs.shape != second.probs.shape:
        raise InvalidProbabilitiesError(
            f"Expected `probs_a` and `probs_b` of one shape, for the same examples and classes, "
            f"but got {list(first.probs.shape)} and {list(second.probs.shape)}."
        )
    samples = [settings.sample(predictions, resample=True) for predictions in (first, second)]
    ours, theirs = (chance_deviations(draws(sample, values(sample), replicates, seed), level) for sample in samples)
    return differences_between(ours, theirs, level=level)


@in_one_thread
def chance_deviations(resampled: dict[str, Draws], level: float) -> dict[str, ChanceDeviations]:
    """The deviations of every metric by chance, from which classifiers are compared."""
    return {name: each.chance_deviations(level) for name, each in resampled.items()}


@in_one_thread
def differences_between(
    first: dict[str, ChanceDeviations], second: dict[str, ChanceDeviations], *, level: float
) -> dict[str, Difference]:
    """First minus second, from draws of the same examples."""
    tail = (1 - fraction("level", level)) / 2
    return {
        metric.name: _difference(first[metric.name], second[metric.name], tail) for metric in METRICS if metric.name in first
    }


def _difference(ours: ChanceDeviations, theirs: ChanceDeviations, tail: float) -> Difference:
    hypotheses = list(product(range(len(ours.estimates)), range(len(theirs.estimates))))
    if len(hypotheses) > 1 and _correlation(ours, theirs) > _ALIKE:
        hypotheses = [(a, b) for a, b in hypotheses if a == b]
    ends = []
    for a, b in hypotheses:
        value = ours.estimates[a] - theirs.estimates[b]
        low, high = quantiles(ours.deviations[a] - theirs.deviations[b], tail)
        ends.append((value - high, value - low))
    value = ours.best - theirs.best
    if math.isinf(value):
        # Only an NLL is infinite: a class of probability zero was the true one, which can happen again.
        return Difference(value, value, value)
    low, high = min(value, *(end[0] for end in ends)), max(value, *(end[1] for end in ends))
    known = ours.deviations.shape[-1] > 1 and all(math.isfinite(each) for each in (value, low, high))
    return Difference(value, low, high) if known else Difference(value, math.nan, math.nan)


def _correlation(ours: ChanceDeviations, theirs: ChanceDeviations) -> float:
    """The correlation of the two by chance, under their middle hypotheses."""
    a, b = (each.deviations[len(each.estimates) // 2] for each in (ours, theirs))
    if torch.equal(a, b):
        return 1.0
    return float(torch.corrcoef(torch.stack((a, b)))[0, 1].nan_to_num())
