r"""Hypotheses about the true gaps: that they are $s$ times those observed, and the errors that would then be observed.

`calibayes.metrics.intervals` turns them into intervals.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.metrics.bins import ReliabilityBins
from calibayes.randomness import derived_seed

__all__ = ["AbsoluteGaps", "EuclideanGaps", "LargestGap", "ScaledGaps", "direction", "mixed_noise"]


class ScaledGaps(Protocol):
    """Hypotheses whose true gaps are $s$ times those observed, $s \\ge 0$."""

    observed: float  # the error that was observed

    @abstractmethod
    def errors(self, s: float, *, resampled: bool = False) -> Tensor:
        """The error of every replicate under hypothesis $s$; if ``resampled``, with the noise of resampling alone."""

    @abstractmethod
    def truth(self, s: float) -> float:
        """The true error under hypothesis $s$."""

    def below(self, s: float, error: float) -> float:
        """The share of replicates under hypothesis $s$ whose error is at most ``error``, rounding apart."""
        return float((self.errors(s) <= error * (1 + 1e-9)).double().mean())


class AbsoluteGaps(ScaledGaps):
    """The sum of absolute gaps $v$, shape ``[D]``, with those of replicates and of a calibrated classifier, ``[B, D]``."""

    def __init__(self, gaps: Tensor, replicates: Tensor, null: Tensor) -> None:
        self._noise, self._null, self._gaps = replicates - gaps, null, direction(gaps, null)
        self.observed, self._unit = float(gaps.abs().sum()), float(self._gaps.abs().sum())

    def errors(self, s: float, *, resampled: bool = False) -> Tensor:
        """The absolute sum of the noise plus $s v$."""
        noise = self._noise if resampled else mixed_noise(self._null, self._noise, s)
        return (noise + s * self._gaps).abs().sum(-1)

    def truth(self, s: float) -> float:
        """The absolute sum of $s v$."""
        return s * self._unit


class EuclideanGaps(ScaledGaps):
    """The same for the Euclidean length, whose square is quadratic: a few sums serve all hypotheses.

    ``null`` is the noise of the replicates by default, for a vector that is not zero for a calibrated classifier.
    """

    def __init__(self, gaps: Tensor, replicates: Tensor, null: Tensor | None = None) -> None:
        noise = replicates - gaps
        null = noise if null is None else null
        along = direction(gaps, null)
        self._square = along.square().sum()
        self._crossed = (null @ along, noise @ along)
        self._own = (null.square().sum(-1), noise.square().sum(-1), (null * noise).sum(-1))
        self._same = null is noise
        self.observed, self._unit = float(gaps.norm()), float(self._square.sqrt())

    def errors(self, s: float, *, resampled: bool = False) -> Tensor:
        """The length of the noise plus $s v$."""
        a, b = (0.0, 1.0) if self._same or resampled else _noise_shares(s)
        crossed = a * self._crossed[0] + b * self._crossed[1]
        own = a * a * self._own[0] + b * b * self._own[1] + 2 * a * b * self._own[2]
        return (s * s * self._square + 2 * s * crossed + own).clamp_min(0).sqrt()

    def truth(self, s: float) -> float:
        """The length of $s v$."""
        return s * self._unit


class LargestGap(ScaledGaps):
    r"""The largest gap of any bin, in which bins of few examples count as much as others.

    Resampling a bin of one example always gives the same gap, as if it were known. So chance is drawn differently here:
    under hypothesis $s$ the accuracy of a bin of $n_m$ examples is $a_m = \mathrm{conf}_m - s \, \mathrm{gap}_m$, and the
    observed one is binomial. The same seed serves every hypothesis.
    """

    def __init__(self, bins: ReliabilityBins, replicates: int, seed: int) -> None:
        filled = bins.weight > 0
        self._confidence, self._gap = bins.confidence[filled].numpy(), bins.gap[filled].numpy()
        self._trials = bins.effective[filled].round().clamp_min(1).long().numpy()
        self._replicates, self._seed = replicates, derived_seed(seed, "largest gap")
        self.observed = float(np.abs(self._gap).max())
        if self.observed < 1e-9:
            self._gap = np.sqrt(self._confidence * (1 - self._confidence) / self._trials)

    def errors(self, s: float, *, resampled: bool = False) -> Tensor:
        """The largest gap of every replicate, which is never resampled."""
        generator = np.random.Generator(np.random.PCG64(self._seed))
        right = generator.binomial(self._trials, self._accuracy(s), size=(self._replicates, len(self._gap)))
        return torch.from_numpy(np.abs(right / self._trials - self._confidence).max(-1))

    def truth(self, s: float) -> float:
        """The largest true gap; an accuracy cannot leave 0 … 1."""
        return float(np.abs(self._accuracy(s) - self._confidence).max())

    def _accuracy(self, s: float) -> npt.NDArray[np.float64]:
        return np.clip(self._confidence - s * self._gap, 0.0, 1.0)


def mixed_noise(null: Tensor, noise: Tensor, s: float) -> Tensor:
    r"""The noise under hypothesis $s$.

    For $s = 0$ the classifier is calibrated and its noise is known without any data: decisions are right with the
    probability that it states. For $s = 1$ it is what resampling shows. Resampling alone would show no noise where all
    decisions happen to be right, or where a bin holds a single example. Between the two, variances are mixed.
    """
    a, b = _noise_shares(s)
    return a * null + b * noise if a > 0 else noise


def _noise_shares(s: float) -> tuple[float, float]:
    part = min(max(s, 0.0), 1.0)
    return math.sqrt(1 - part), math.sqrt(part)


def direction(gaps: Tensor, null: Tensor) -> Tensor:
    """The gaps; if none was observed, rounding apart, those that chance could have hidden."""
    seen = gaps.norm() > 1e-6 * null.norm(dim=-1).median()
    return gaps if bool(seen) else null.std(0, correction=0)
