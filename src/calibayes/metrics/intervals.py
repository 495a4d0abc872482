r"""Intervals from replicates of a bootstrap.

A mean is estimated without bias, and the spread of its replicates is its interval. A calibration error is not: it is the
length of a vector of gaps, and chance alone makes it longer. Chance does so twice in a replicate, so percentiles of
replicates are wrong: for a calibrated classifier every interval would miss the true 0.

Write $v$ for the observed gaps, $v^*_b$ for those of replicate $b$, and $e_b = v^*_b - v$ for its noise. Under the
hypothesis that the true gaps are $s v$, for any $s \ge 0$, the observed error would be distributed as $\| s v + e_b \|$. The
interval holds the true errors $\| s v \|$ of all hypotheses under which the observed error, $\| v \|$, is not unusual:

$$ \{ \| s v \| : \; \tfrac{\alpha}{2} \le P_b(\| s v + e_b \| \le \| v \|) \le 1 - \tfrac{\alpha}{2} \}. $$

For a calibrated classifier $s = 0$ is such a hypothesis, nearly always, and the interval begins at 0. It may lie below the
estimate. The noise near $s = 0$ is that of a calibrated classifier (`calibayes.metrics.null_distribution`), not that of
resampling, which shows none where all decisions happen to be right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from calibayes.metrics.scaled_gaps import ScaledGaps

__all__ = [
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
    """The deviations of an estimate by chance, under one or several hypotheses that are not ruled out."""

    estimates: list[float]  # the true value under each hypothesis: the observed one less its bias
    deviations: Tensor  # what replicates add to the estimate under each hypothesis, shape [H, B], centred

    @property
    def best(self) -> float:
        """The estimate under the middle hypothesis."""
        return self.estimates[len(self.estimates) // 2]


class Draws(Protocol):
    """The bootstrap replicates of one metric."""

    def interval(self, level: float) -> Interval:
        """An interval for the true value."""

    def chance_deviations(self, level: float) -> ChanceDeviations:
        """The deviations by chance, under the hypotheses at both ends of the interval and in its middle."""


@dataclass(frozen=True, eq=False)
class PlainDraws:
    """A metric whose replicates spread around the estimate: a mean, or a smooth function of means."""

    estimate: float
    values: Tensor  # that of every replicate
    centre: float  # the value that is replicated, where cells make it differ a little from the estimate

    def interval(self, level: float) -> Interval:
        """The central replicates."""
        shift = self.estimate - self.centre if math.isfinite(self.estimate) else 0.0
        low, high = quantiles(self.values, (1 - level) / 2)
        return Interval(low + shift, high + shift)

    def chance_deviations(self, level: float) -> ChanceDeviations:
        """The replicates around their centre: one hypothesis."""
        return ChanceDeviations([self.estimate], (self.values - self.centre).unsqueeze(0))


@dataclass(frozen=True, eq=False)
class NormDraws:
    """A metric that is the length of a vector which chance makes longer."""

    gaps: ScaledGaps

    def interval(self, level: float) -> Interval:
        """The true errors of the hypotheses under which the observed one is not unusual."""
        low, _, high = self._scales(level)
        return Interval(self.gaps.truth(low), self.gaps.truth(high))

    def chance_deviations(self, level: float) -> ChanceDeviations:
        """At both ends, and where the observed error is the median."""
        estimates, deviations = [], []
        for scale in self._scales(level):
            errors = self.gaps.errors(scale, resampled=True)
            middle = float(errors.median())
            estimates.append(max(0.0, self.gaps.observed - (middle - self.gaps.truth(scale))))
            deviations.append(errors - middle)
        return ChanceDeviations(estimates, torch.stack(deviations))

    def _scales(self, level: float) -> tuple[float, float, float]:
        tail, observed = (1 - level) / 2, self.gaps.observed
        # An error smaller than that of a calibrated classifier by chance is luck, not evidence of an error below zero:
        # the upper end is at least the one that such a classifier would usually have.
        usual = max(observed, float(self.gaps.errors(0.0).median()))
        # At the lower end a replicate that ties with the observed error supports the hypothesis, so it is not counted below.
        return self._scale(1 - tail, observed * (1 - 1e-7)), self._scale(0.5, observed), self._scale(tail, usual)

    def _scale(self, share: float, error: float) -> float:
        """The largest $s$ under which at least this share of replicates lies at or below ``error``."""
        if self.gaps.below(0.0, error) < share:
            return 0.0
        low, high = 0.0, 2.0
        while self.gaps.below(high, error) >= share and high < 1e9 and self.gaps.truth(high) > 0:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.gaps.below(middle, error) >= share else (low, middle)
        return low


@dataclass(frozen=True, eq=False)
class SquaredNormDraws:
    """The square of a norm; or a largest possible value minus that square, which chance keeps from being reached."""

    norm: NormDraws
    most: float | None = None

    def interval(self, level: float) -> Interval:
        """The squares of the norm's interval."""
        low, high = (root**2 for root in self.norm.interval(level))
        return Interval(low, high) if self.most is None else Interval(self.most - high, self.most - low)

    def chance_deviations(self, level: float) -> ChanceDeviations:
        """Those of the norm, squared."""
        roots, deviations = self.norm.chance_deviations(level)
        moved = (deviations + torch.tensor(roots).to(deviations)[:, None]).clamp_min(0).square()
        centred = moved - moved.median(-1, keepdim=True).values
        if self.most is None:
            return ChanceDeviations([root**2 for root in roots], centred)
        return ChanceDeviations([self.most - root**2 for root in roots], -centred)


def wilson(rate: float, trials: float, level: float) -> Interval:
    """Wilson's interval of a share, which is right at 0 and 1 too, where replicates do not spread."""
    z = math.sqrt(2) * float(torch.erfinv(torch.tensor(level, dtype=torch.float64)))
    rate = min(max(rate, 0.0), 1.0)
    centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials**2))
    return Interval(min(rate, max(0.0, centre - half)), max(rate, min(1.0, centre + half)))


def with_rare_errors(name: str, ends: Interval, low: float, high: float) -> Interval:
    """A metric's interval, widened by what is known of the accuracy where errors (or right decisions) are too few to resample.

    A classifier that was right ten times in ten may be wrong one time in four. Its mean gap, confidence minus accuracy, then
    lies within ``low … high``, and its calibration errors may be as large as that gap.
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
