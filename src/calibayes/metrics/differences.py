"""Two classifiers on the same examples: how much better is one, and how sure is that."""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor

from calibayes.checks import positive_integer, share
from calibayes.errors import InvalidProbabilitiesError
from calibayes.metrics.arrays import Array, as_predictions
from calibayes.metrics.catalogue import METRICS
from calibayes.metrics.evaluate import Settings
from calibayes.metrics.intervals import Draws
from calibayes.metrics.kernel import WIDTH
from calibayes.metrics.measuring import draws, values

__all__ = ["Difference", "Movement", "between", "differences", "movements"]


class Difference(NamedTuple):
    """How much larger a metric is for the first classifier than for the second.

    Attributes:
        value: first minus second, each without what chance adds to it.
        low: where the true difference begins, at the level that was asked for.
        high: where it ends.
    """

    value: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval leaves zero out: the sign of the difference is known."""
        return self.low > 0 or self.high < 0


def differences(
    probs_a: Array,
    probs_b: Array,
    targets: Array,
    bins: int = 15,
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
    r"""How much two classifiers differ in every metric, with paired bootstrap intervals.

    The same examples are resampled for both, so what makes an example hard for both drops out: the interval is narrower
    than those of `evaluate` suggest. Each calibration error counts without the bias $b$ that chance gives it (see
    `calibayes.metrics.intervals`), and with $d_b$ the deviations of replicates, the interval is
    $\hat\Delta - q_{1-\alpha/2}(d^A_b - d^B_b)$ to $\hat\Delta - q_{\alpha/2}(d^A_b - d^B_b)$.

    Args:
        probs_a: class probabilities of the first, shape ``[n, K]`` or one column for two classes, torch or numpy.
        probs_b: those of the second, for the same examples in the same order.
        targets: the true classes, integers of shape ``[n]``.
        bins: the number of bins of the binned errors.
        weights: how much each example counts; only ratios matter.
        level: the probability with which an interval holds the true difference.
        replicates: how many times the examples are resampled.
        seed: of the resampling.
        target_accuracy: of ``coverage_at_target``.
        k: of the top-k accuracy.
        kernel_width: of MMCE, WMMCE and KCE.
        check: look at the values first; ``False`` when they are known to be good.

    Example:
        >>> sure = torch.tensor([[0.99, 0.01]]).expand(300, 2)
        >>> found = differences(sure, torch.full((300, 2), 0.5), torch.tensor([0, 1, 1] * 100), replicates=200)
        >>> found["nll"].clear, found["nll"].value > 2
        (True, True)
    """
    share("level", level)
    positive_integer("replicates", replicates)
    settings = Settings(bins, target_accuracy=target_accuracy, k=k, kernel_width=kernel_width, seed=seed)
    first, second = (as_predictions(probs, targets, weights, check=check) for probs in (probs_a, probs_b))
    if first.probs.shape != second.probs.shape:
        raise InvalidProbabilitiesError(
            f"Expected `probs_a` and `probs_b` of one shape, for the same examples and classes, "
            f"but got {list(first.probs.shape)} and {list(second.probs.shape)}."
        )
    ours, theirs = (settings.sample(predictions, resample=True) for predictions in (first, second))
    return between(*(movements(draws(each, values(each), replicates, seed)) for each in (ours, theirs)), level=level)


class Movement(NamedTuple):
    """What a bootstrap says about one metric: the estimate without bias, and how far chance moves it in each replicate."""

    corrected: float
    deviations: Tensor


def movements(told: dict[str, Draws]) -> dict[str, Movement]:
    """All that a comparison needs of the draws."""
    return {name: Movement(each.corrected(), each.deviations()) for name, each in told.items()}


def between(first: dict[str, Movement], second: dict[str, Movement], *, level: float) -> dict[str, Difference]:
    """First minus second, from draws of the same examples."""
    tail = (1 - share("level", level)) / 2
    found = {}
    for name in (metric.name for metric in METRICS if metric.name in first):
        ours, theirs = first[name], second[name]
        value = ours.corrected - theirs.corrected
        apart = (ours.deviations - theirs.deviations).sort().values  # NaN comes last, and from infinite losses only
        last = len(apart) - 1
        low, high = value - float(apart[round((1 - tail) * last)]), value - float(apart[round(tail * last)])
        known = last > 0 and math.isfinite(value) and math.isfinite(low) and math.isfinite(high)
        found[name] = Difference(value, low, high) if known else Difference(value, math.nan, math.nan)
    return found
