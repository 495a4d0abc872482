r"""Intervals from replicates of a bootstrap.

A mean is estimated without bias, and the spread of its replicates is its interval. A calibration error is not: it is the
length of a vector of gaps, and chance alone makes it longer. Chance does so twice in a replicate, so percentiles of
replicates are wrong: of a calibrated classifier every interval would miss the true 0.

Write $v$ for the observed gaps, $v^*_b$ for those of replicate $b$, and $e_b = v^*_b - v$ for its noise. In a world where
the true gaps are $s v$, for any $s \ge 0$, the observed error would be distributed as $\| s v + e_b \|$. The interval holds
the true errors $\| s v \|$ of all worlds in which the error that was observed, $\| v \|$, is not unusual:

$$ \{ \| s v \| : \; \tfrac{\alpha}{2} \le P_b(\| s v + e_b \| \le \| v \|) \le 1 - \tfrac{\alpha}{2} \}. $$

For a calibrated classifier $s = 0$ is such a world and the interval begins at 0. It may lie below the estimate.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.metrics.bins import ReliabilityBins
from calibayes.randomness import derived_seed

__all__ = ["Draws", "Euclid", "Family", "Interval", "LargestGap", "Length", "Norm", "Plain", "Squared", "wilson"]

_HALVINGS = 12


class Interval(NamedTuple):
    """Where the true value lies, at the level that was asked for."""

    low: float
    high: float


class Draws(Protocol):
    """What a bootstrap tells about one metric."""

    def interval(self, level: float) -> Interval:
        """An interval for the true value."""
        ...

    def corrected(self) -> float:
        """The estimate, without what chance adds to it."""
        ...

    def deviations(self) -> Tensor:
        """How far chance moves the estimate, one number per replicate, centred."""
        ...


@dataclass(frozen=True, eq=False)
class Plain:
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
        low, high = _quantiles(self.values, (1 - level) / 2)
        return Interval(low + shift, high + shift)

    def corrected(self) -> float:
        """The estimate itself."""
        return self.estimate

    def deviations(self) -> Tensor:
        """Replicates minus what they are replicates of."""
        return self.values - self.centre


class Family(Protocol):
    """Worlds whose true gaps are $s$ times those observed."""

    def below(self, s: float) -> float:
        """In which share of replicates of world $s$ the error is at most the one observed."""
        ...

    def truth(self, s: float) -> float:
        """The true error of world $s$."""
        ...

    def errors(self, s: float) -> Tensor:
        """The error of every replicate of world $s$."""
        ...


@dataclass(frozen=True, eq=False)
class Norm:
    """A metric that is the length of a vector which chance makes longer: its interval is that of the worlds not ruled out."""

    family: Family

    def interval(self, level: float) -> Interval:
        """The true errors of the worlds in which the observed one is not unusual."""
        tail = (1 - level) / 2
        return Interval(self.family.truth(self._world(1 - tail)), self.family.truth(self._world(tail)))

    @cached_property
    def _likely(self) -> float:
        return self._world(0.5)

    def corrected(self) -> float:
        """The true error of the world in which the observed one is the median."""
        return self.family.truth(self._likely)

    def deviations(self) -> Tensor:
        """Errors of that world around their median."""
        errors = self.family.errors(self._likely)
        return errors - errors.median()

    def _world(self, share: float) -> float:
        """The largest $s$ in which at least this share of replicates lies at or below the observed error."""
        if self.family.below(0.0) < share:
            return 0.0
        low, high = 0.0, 2.0
        while self.family.below(high) >= share and high < 1e6:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.family.below(middle) >= share else (low, middle)
        return low


@dataclass(frozen=True, eq=False)
class Squared:
    """The square of a norm, estimated in a way of its own."""

    norm: Norm

    def interval(self, level: float) -> Interval:
        """The squares of the norm's interval."""
        low, high = self.norm.interval(level)
        return Interval(low**2, high**2)

    def corrected(self) -> float:
        """The square of the norm's."""
        return self.norm.corrected() ** 2

    def deviations(self) -> Tensor:
        """Squared errors of the world in which the observed one is the median, around their median."""
        squares = (self.norm.corrected() + self.norm.deviations()).clamp_min(0).square()
        return squares - squares.median()


class _Worlds(ABC):
    """A family whose true errors are proportional to $s$."""

    observed: float

    @abstractmethod
    def errors(self, s: float) -> Tensor:
        """The error of every replicate of world $s$."""

    def below(self, s: float) -> float:
        """In which share of replicates the error is at most the one observed; rounding does not count."""
        return float((self.errors(s) <= self.observed * (1 + 1e-12)).double().mean())

    def truth(self, s: float) -> float:
        """The true error of world $s$."""
        return s * self.observed


class Length(_Worlds):
    """The family of a vector of gaps, for any norm.

    Args:
        gaps: $v$, shape ``[D]``.
        replicates: $v^*_b$, shape ``[B, D]``.
        norm: the length of vectors ``[..., D]``.
    """

    def __init__(self, gaps: Tensor, replicates: Tensor, norm: Callable[[Tensor], Tensor]) -> None:
        self._gaps, self._noise, self._norm = gaps, replicates - gaps, norm
        self.observed = float(norm(gaps))

    def errors(self, s: float) -> Tensor:
        """The error of every replicate of world $s$."""
        return self._norm(self._noise + s * self._gaps)


class Euclid(_Worlds):
    """The same for the Euclidean length, whose square is quadratic in $s$: three sums serve all worlds."""

    def __init__(self, gaps: Tensor, replicates: Tensor) -> None:
        noise = replicates - gaps
        self._square, self._mixed, self._own = gaps.square().sum(), noise @ gaps, noise.square().sum(-1)
        self.observed = float(self._square.sqrt())

    def errors(self, s: float) -> Tensor:
        """The error of every replicate of world $s$."""
        return (s * s * self._square + 2 * s * self._mixed + self._own).clamp_min(0).sqrt()


class LargestGap:
    r"""The family of the largest gap of any bin, in which bins of few examples count as much as others.

    Resampling a bin of one example always gives the same gap, as if it were known. So chance is drawn otherwise here: in
    world $s$ the accuracy of a bin of $n_m$ examples is $a_m = \mathrm{conf}_m - s \, \mathrm{gap}_m$, and what is observed
    of it is binomial.

    Args:
        bins: the observed bins.
        replicates: how many times they are drawn.
        seed: of the draws, the same for every world.
    """

    def __init__(self, bins: ReliabilityBins, replicates: int, seed: int) -> None:
        filled = bins.weight > 0
        self._sure, self._gap = bins.confidence[filled].numpy(), bins.gap[filled].numpy()
        self._trials = bins.effective[filled].round().clamp_min(1).long().numpy()
        self._replicates, self._seed = replicates, derived_seed(seed, "largest gap")
        self._observed = float(np.abs(self._gap).max())

    def errors(self, s: float) -> Tensor:
        """The largest gap of every replicate of world $s$."""
        generator = np.random.Generator(np.random.PCG64(self._seed))
        right = generator.binomial(self._trials, self._accuracy(s), size=(self._replicates, len(self._gap)))
        return torch.from_numpy(np.abs(right / self._trials - self._sure).max(-1))

    def below(self, s: float) -> float:
        """In which share of replicates the largest gap is at most the one observed."""
        return float((self.errors(s) <= self._observed * (1 + 1e-9)).double().mean())

    def truth(self, s: float) -> float:
        """The largest true gap of world $s$; an accuracy cannot leave 0 … 1."""
        return float(np.abs(self._accuracy(s) - self._sure).max())

    def _accuracy(self, s: float) -> npt.NDArray[np.float64]:
        return np.clip(self._sure - s * self._gap, 0.0, 1.0)


def wilson(rate: float, trials: float, level: float) -> Interval:
    """Wilson's interval of a share, which is right at 0 and 1 too, where replicates do not spread."""
    z = math.sqrt(2) * float(torch.erfinv(torch.tensor(level, dtype=torch.float64)))
    rate = min(max(rate, 0.0), 1.0)
    centre = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials**2))
    return Interval(min(rate, max(0.0, centre - half)), max(rate, min(1.0, centre + half)))


def _quantiles(values: Tensor, tail: float) -> tuple[float, float]:
    """The values that leave ``tail`` of them on either side; not interpolated, as some may be infinite."""
    ordered = values.sort().values
    last = len(ordered) - 1
    return float(ordered[math.floor(tail * last)]), float(ordered[math.ceil((1 - tail) * last)])
