r"""The interval of a difference between two ways of training, for chance in the trainings and in the test examples together.

Trained with seed $s$ and scored on the test examples, two contenders differ by

$$ D_s = \mu + a_s + b + e_s, $$

where $\mu$ is the difference between the *ways of training*, the quantity of interest, $a_s$ the chance in the training with
seed $s$, $b$ the chance in the test examples, which all seeds share, and $e_s$ their effect on one seed alone. The
variance of the mean $\bar D$ over $S$ seeds is $\sigma_a^2/S + \sigma_b^2 + \sigma_e^2/S$. More seeds do not make $\sigma_b^2$
smaller: the test examples are the same.

Two things can be measured. The standard deviation $d$ of $D_1, …, D_S$, whose square estimates $\sigma_a^2 + \sigma_e^2$. And
the variance $V$ of $\bar D$ when the test examples are drawn again with replacement, the same draws for both contenders and
all seeds; it estimates $\sigma_b^2 + \sigma_e^2/S$. The interval is

$$ \bar D \pm \sqrt{t^2 \, d^2/S + z^2 \, V}, $$

with $t$ the quantile of Student's distribution with $S-1$ degrees of freedom and $z$ that of the normal one, both at
$1 - \alpha/(2m)$ for $m$ comparisons (Bonferroni). It counts $\sigma_e^2/S$ twice, and it combines two half-widths each of
which is right on its own, so it is conservative. With one seed there is no $d$, and the interval is about $\mu + a_1$, these
very networks, not about the way of training.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Estimate", "mean_difference"]

_HALVINGS = 30


class Estimate(NamedTuple):
    """A difference with its interval and p-value."""

    value: float  # the mean over seeds
    low: float  # the lower end of the interval
    high: float  # the upper end
    p_value: float  # the level at which the interval would just reach zero, after Bonferroni's correction: at most 1
    seeds_error: float | None  # the standard error of the mean over seeds, `None` for a single seed
    test_error: float  # the standard error that comes from the test examples

    @property
    def standard_error(self) -> float:
        """The standard error of the difference, from seeds and examples together."""
        return math.hypot(self.seeds_error or 0.0, self.test_error)

    @property
    def above(self) -> bool:
        """True if the difference is clearly above zero."""
        return self.low > 0

    @property
    def below(self) -> bool:
        """True if the difference is clearly below zero."""
        return self.high < 0

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit, or with the other sign."""
        low, high = sorted((factor * self.low, factor * self.high))
        seeds = None if self.seeds_error is None else abs(factor) * self.seeds_error
        return Estimate(factor * self.value, low, high, self.p_value, seeds, abs(factor) * self.test_error)


def mean_difference(per_seed: Sequence[float], test_variance: float, *, level: float = 0.95, comparisons: int = 1) -> Estimate:
    r"""The mean of differences, one per seed, with the interval of the formula at the top of this module.

    Args:
        per_seed: $D_1, …, D_S$, the difference of the two contenders trained with the same seed.
        test_variance: $V$, the variance of their mean over the draws of the test examples.
        level: $1 - \alpha$.
        comparisons: $m$, the number of intervals that shall hold together.

    Examples:
        >>> estimate = mean_difference([0.020, 0.024, 0.019], 0.001**2)
        >>> print(f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})")
        0.021 (0.014 to 0.028)
        >>> round(estimate.p_value, 3), round(mean_difference([0.020, 0.024, 0.019], 0.001**2, comparisons=7).p_value, 3)
        (0.005, 0.037)
    """
    from scipy.special import stdtrit

    seeds = len(per_seed)
    value = sum(per_seed) / seeds  # not fmean, which refuses both infinities together
    if not math.isfinite(value):
        # A probability of zero for the true class makes the NLL infinite, which is not chance, unless both are infinite.
        return Estimate(value, value, value, math.nan if math.isnan(value) else 0.0, None, 0.0)
    of_seeds = statistics.stdev(per_seed) / math.sqrt(seeds) if seeds > 1 else None
    of_test = math.sqrt(test_variance)

    def half_width(alpha: float) -> float:
        tail = alpha / (2 * comparisons)
        seeds_part = 0.0 if of_seeds is None else -float(stdtrit(seeds - 1, tail)) * of_seeds
        return math.hypot(seeds_part, -statistics.NormalDist().inv_cdf(tail) * of_test)

    half = half_width(1 - level)
    low, high = math.log(1e-12), 0.0  # of the logarithm of the level at which the interval reaches zero
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if half_width(math.exp(middle)) < abs(value) else (middle, high)
    return Estimate(value, value - half, value + half, math.exp(high), of_seeds, of_test)
