r"""Intervals from replicates of a bootstrap.

A mean is estimated without bias, and the spread of its replicates is its interval. A calibration error is not: it is the
length of a vector of gaps, and chance alone makes it longer. Chance does so twice in a replicate, so percentiles of
replicates are wrong: of a calibrated classifier every interval would miss the true 0.

Write $v$ for the observed gaps, $v^*_b$ for those of replicate $b$, and $e_b = v^*_b - v$ for its noise. In a world where
the true gaps are $s v$, for any $s \ge 0$, the observed error would be distributed as $\| s v + e_b \|$. The interval holds
the true errors $\| s v \|$ of all worlds in which the error that was observed, $\| v \|$, is not unusual:

$$ \{ \| s v \| : \; \tfrac{\alpha}{2} \le P_b(\| s v + e_b \| \le \| v \|) \le 1 - \tfrac{\alpha}{2} \}. $$

For a calibrated classifier $s = 0$ is such a world, nearly always, and the interval begins at 0. It may lie below the
estimate. The noise of worlds near $s = 0$ is that of a calibrated classifier (`calibayes.metrics.null_distribution`), not that
of resampling, which knows none where all decisions happen to be right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from calibayes.metrics.bootstrap_worlds import Family

__all__ = [
    "BelowMaximumDraws",
    "ChanceDeviations",
    "Draws",
    "Interval",
    "NormDraws",
    "PlainDraws",
    "SquaredNormDraws",
    "quantiles",
    "wilson",
    "with_rare_errors",
    "within_bounds",
]

_HALVINGS = 12


class Interval(NamedTuple):
    """The range in which the true value lies, at the requested confidence level."""

    low: float
    high: float


class ChanceDeviations(NamedTuple):
    """The deviations of an estimate by chance, in one or several worlds that are not ruled out.

    Attributes:
        estimates: the true value as each world would have it, from the one observed less the bias of that world; that
            of the middle world is the best.
        deviations: what replicates add to the estimate in each world, shape ``[W, B]``, centred.
    """

    estimates: list[float]
    deviations: Tensor

    @property
    def best(self) -> float:
        """The estimate of the middle world."""
        return self.estimates[len(self.estimates) // 2]


class Draws(Protocol):
    """The bootstrap replicates of one metric."""

    def interval(self, level: float) -> Interval:
        """An interval for the true value."""
        ...

    def moves(self, level: float) -> ChanceDeviations:
        """Return the deviations by chance, in the worlds at the ends of the interval and in its middle."""
        ...


@dataclass(frozen=True, eq=False)
class PlainDraws:
    """A metric whose replicates spread around the estimate: a mean, or a smooth function of means.

    Attributes:
        estimate: the value that is reported.
        values: that of every replicate.
        centre: what replicates are replicates of, where cells make it differ a little from ``estimate``.
    """

    estimate: float
    values: Tensor
    centre: float

    def interval(self, level: float) -> Interval:
        """The central replicates."""
        shift = self.estimate - self.centre if math.isfinite(self.estimate) else 0.0
        low, high = quantiles(self.values, (1 - level) / 2)
        return Interval(low + shift, high + shift)

    def moves(self, level: float) -> ChanceDeviations:
        """Replicates around what they are replicates of: one world."""
        return ChanceDeviations([self.estimate], (self.values - self.centre).unsqueeze(0))


@dataclass(frozen=True, eq=False)
class NormDraws:
    """A metric that is the length of a vector which chance makes longer: its interval is that of the worlds not ruled out."""

    family: Family

    def interval(self, level: float) -> Interval:
        """The true errors of the worlds in which the observed one is not unusual."""
        low, _, high = self._worlds(level)
        return Interval(self.family.truth(low), self.family.truth(high))

    def moves(self, level: float) -> ChanceDeviations:
        """In the worlds at both ends and in the one where the observed error is the median."""
        estimates, deviations = [], []
        for world in self._worlds(level):
            errors = self.family.errors(world, resampled=True)
            middle = float(errors.median())
            estimates.append(max(0.0, self.family.observed - (middle - self.family.truth(world))))
            deviations.append(errors - middle)
        return ChanceDeviations(estimates, torch.stack(deviations))

    def _worlds(self, level: float) -> tuple[float, float, float]:
        tail, observed = (1 - level) / 2, self.family.observed
        # An error smaller than chance makes of a calibrated classifier is luck, and no evidence of an error below zero:
        # the upper end is at least the one that such a classifier would have by rights.
        fair = max(observed, float(self.family.errors(0.0).median()))
        # At the lower end a replicate that ties with the observed error speaks for the world, so it is not counted below.
        return self._world(1 - tail, observed * (1 - 1e-7)), self._world(0.5, observed), self._world(tail, fair)

    def _world(self, share: float, error: float) -> float:
        """The largest $s$ in which at least this share of replicates lies at or below ``error``."""
        if self.family.below(0.0, error) < share:
            return 0.0
        low, high = 0.0, 2.0
        while self.family.below(high, error) >= share and high < 1e9 and self.family.truth(high) > 0:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.family.below(middle, error) >= share else (low, middle)
        return low


@dataclass(frozen=True, eq=False)
class SquaredNormDraws:
    """The square of a norm, estimated in a way of its own."""

    norm: NormDraws

    def interval(self, level: float) -> Interval:
        """The squares of the norm's interval."""
        low, high = self.norm.interval(level)
        return Interval(low**2, high**2)

    def moves(self, level: float) -> ChanceDeviations:
        """The squares of the norm's."""
        roots = self.norm.moves(level)
        estimates = [root**2 for root in roots.estimates]
        moved = (roots.deviations + torch.tensor(roots.estimates).to(roots.deviations)[:, None]).clamp_min(0).square()
        return ChanceDeviations(estimates, moved - moved.median(-1, keepdim=True).values)


@dataclass(frozen=True, eq=False)
class BelowMaximumDraws:
    """A largest possible value minus a squared norm, which chance keeps from being reached."""

    most: float
    squared: SquaredNormDraws

    def interval(self, level: float) -> Interval:
        """The largest value less the interval of the squared norm."""
        low, high = self.squared.interval(level)
        return Interval(self.most - high, self.most - low)

    def moves(self, level: float) -> ChanceDeviations:
        """Those of the squared norm, the other way round."""
        squared = self.squared.moves(level)
        return ChanceDeviations([self.most - each for each in squared.estimates], -squared.deviations)


def wilson(rate: float, trials: float, level: float) -> Interval:
    """Wilson's interval of a share, which is right at 0 and 1 too, where replicates do not spread."""
    z = math.sqrt(2) * float(torch.erfinv(torch.tensor(level, dtype=torch.float64)))
    rate = min(max(rate, 0.0), 1.0)
    centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials**2))
    return Interval(min(rate, max(0.0, centre - half)), max(rate, min(1.0, centre + half)))


def with_rare_errors(name: str, ends: Interval, low: float, high: float) -> Interval:
    """An interval widened by what is known of the accuracy, where errors (or right decisions) are too few to resample.

    A classifier that was right ten times in ten may be wrong one time in four. Its mean gap then lies within ``low …
    high``, and its calibration errors may be as large as that gap.

    Args:
        name: of the metric.
        ends: the interval from resampling.
        low: confidence minus the upper end of the accuracy.
        high: confidence minus its lower end.
    """
    if name == "overconfidence":
        return Interval(min(ends.low, low), max(ends.high, high))
    far = max(abs(low), abs(high))
    reach = {"ece_squared_debiased": far**2, "kce_squared": far**2}
    if name in ("ece", "ece_equal_mass", "mce", "rms_calibration_error", "smooth_ece", "mmce", *reach):
        return Interval(ends.low, max(ends.high, reach.get(name, far)))
    return ends


def within_bounds(name: str, ends: Interval, classes: int) -> Interval:
    """The part of an interval that a metric can reach at all."""
    if name in ("overconfidence", "nll", "wmmce"):
        return ends
    most = {"brier": 2.0, "brier_reliability": 2.0, "brier_resolution": 1 - 1 / classes, "brier_uncertainty": 1 - 1 / classes}
    top = most.get(name, 1.0)
    return Interval(*(each if math.isnan(each) else min(max(each, 0.0), top) for each in ends))


def quantiles(values: Tensor, tail: float) -> tuple[float, float]:
    """The values that leave ``tail`` of them on either side; not interpolated, as some may be infinite."""
    ordered = values.sort().values
    last = len(ordered) - 1
    return float(ordered[math.floor(tail * last)]), float(ordered[math.ceil((1 - tail) * last)])
