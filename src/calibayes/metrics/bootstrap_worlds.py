"""Worlds of a bootstrap: how large an error would be observed if the true gaps were other than those observed.

`calibayes.metrics.intervals` says what they are for.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.metrics.bins import ReliabilityBins
from calibayes.randomness import derived_seed

__all__ = ["EuclideanWorlds", "Family", "LargestGapWorlds", "NormWorlds", "direction", "mixed"]


class Family(Protocol):
    """Worlds whose true gaps are $s$ times those observed.

    Attributes:
        observed: the error that was observed.
    """

    observed: float

    def below(self, s: float, error: float) -> float:
        """In which share of replicates of world $s$ the error is at most ``error``."""
        ...

    def truth(self, s: float) -> float:
        """The true error of world $s$."""
        ...

    def errors(self, s: float, *, resampled: bool = False) -> Tensor:
        """The error of every replicate of world $s$; if asked, with the noise of resampling alone, which can be paired."""
        ...


class _Worlds(ABC):
    """A family whose true errors are proportional to $s$."""

    observed: float
    _unit: float  # the true error of world 1: the observed one, unless that is zero

    @abstractmethod
    def errors(self, s: float, *, resampled: bool = False) -> Tensor:
        """The error of every replicate of world $s$."""

    def below(self, s: float, error: float) -> float:
        """In which share of replicates the error is at most ``error``; rounding does not count."""
        return float((self.errors(s) <= error * (1 + 1e-12)).double().mean())

    def truth(self, s: float) -> float:
        """The true error of world $s$."""
        return s * self._unit


class NormWorlds(_Worlds):
    """The family of a vector of gaps, for any norm.

    Args:
        gaps: $v$, shape ``[D]``.
        replicates: $v^*_b$, shape ``[B, D]``.
        null: gaps that chance makes of a calibrated classifier, shape ``[B, D]``; see `mixed`.
        norm: the length of vectors ``[..., D]``.
    """

    def __init__(self, gaps: Tensor, replicates: Tensor, null: Tensor, norm: Callable[[Tensor], Tensor]) -> None:
        self._noise, self._null, self._norm = replicates - gaps, null, norm
        self._gaps = direction(gaps, null)
        self.observed, self._unit = float(norm(gaps)), float(norm(self._gaps))

    def errors(self, s: float, *, resampled: bool = False) -> Tensor:
        """The error of every replicate of world $s$."""
        noise = self._noise if resampled else mixed(self._null, self._noise, s)
        return self._norm(noise + s * self._gaps)


class EuclideanWorlds(_Worlds):
    """The same for the Euclidean length, whose square is quadratic: a few sums serve all worlds.

    Args:
        gaps: $v$, shape ``[D]``.
        replicates: $v^*_b$, shape ``[B, D]``.
        null: as of `NormWorlds`; by default the noise of the replicates, for a vector that is not zero when calibrated.
    """

    def __init__(self, gaps: Tensor, replicates: Tensor, null: Tensor | None = None) -> None:
        noise = replicates - gaps
        null = noise if null is None else null
        along = direction(gaps, null)
        self._square = along.square().sum()
        self._mixed = (null @ along, noise @ along)
        self._own = (null.square().sum(-1), noise.square().sum(-1), (null * noise).sum(-1))
        self._same = null is noise
        self.observed, self._unit = float(gaps.norm()), float(self._square.sqrt())

    def errors(self, s: float, *, resampled: bool = False) -> Tensor:
        """The error of every replicate of world $s$."""
        a, b = (0.0, 1.0) if self._same or resampled else _shares(s)
        crossed = a * self._mixed[0] + b * self._mixed[1]
        own = a * a * self._own[0] + b * b * self._own[1] + 2 * a * b * self._own[2]
        return (s * s * self._square + 2 * s * crossed + own).clamp_min(0).sqrt()


def mixed(null: Tensor, noise: Tensor, s: float) -> Tensor:
    r"""The noise of world $s$.

    In world 0 the classifier is calibrated and its noise is known without any data: decisions are right with the
    probability that it says. In world 1 it is what resampling shows. Resampling alone would know no noise where all
    decisions happen to be right, or where a bin holds a single example. Between the two, variances are mixed.
    """
    a, b = _shares(s)
    return a * null + b * noise if a > 0 else noise


def _shares(s: float) -> tuple[float, float]:
    part = min(max(s, 0.0), 1.0)
    return math.sqrt(1 - part), math.sqrt(part)


def direction(gaps: Tensor, null: Tensor) -> Tensor:
    """The gaps; where none was observed, rounding apart, what chance could have hidden."""
    seen = gaps.norm() > 1e-6 * null.norm(dim=-1).median()
    return gaps if bool(seen) else null.std(0, correction=0)


class LargestGapWorlds:
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
        self.observed = float(np.abs(self._gap).max())
        if self.observed < 1e-9:
            self._gap = np.sqrt(self._sure * (1 - self._sure) / self._trials)

    def errors(self, s: float, *, resampled: bool = False) -> Tensor:
        """The largest gap of every replicate of world $s$, which is never resampled."""
        generator = np.random.Generator(np.random.PCG64(self._seed))
        right = generator.binomial(self._trials, self._accuracy(s), size=(self._replicates, len(self._gap)))
        return torch.from_numpy(np.abs(right / self._trials - self._sure).max(-1))

    def below(self, s: float, error: float) -> float:
        """In which share of replicates the largest gap is at most ``error``."""
        return float((self.errors(s) <= error * (1 + 1e-9)).double().mean())

    def truth(self, s: float) -> float:
        """The largest true gap of world $s$; an accuracy cannot leave 0 … 1."""
        return float(np.abs(self._accuracy(s) - self._sure).max())

    def _accuracy(self, s: float) -> npt.NDArray[np.float64]:
        return np.clip(self._sure - s * self._gap, 0.0, 1.0)
