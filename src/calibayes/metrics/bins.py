"""Confidences sorted into bins, the default number of bins, and the calibration errors of bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from calibayes.checks import fraction, positive_integer
from calibayes.metrics.prediction_arrays import Array, as_predictions

__all__ = ["DEFAULT_BINS", "ReliabilityBins", "equal_width", "place", "reliability_bins"]

DEFAULT_BINS = 15
"""The number of bins of the ECE and every other binned error, unless another is asked for."""

_HALVINGS = 30


@dataclass(frozen=True, eq=False, kw_only=True)
class ReliabilityBins:
    """The bins of a reliability diagram: for each bin, the number of examples, their mean confidence and their accuracy.

    Attributes:
        edges: the ``M + 1`` edges $0, 1/M, …, 1$, in float64.
        count: the number of examples in each of the ``M`` bins.
        weight: the sum of their weights; the same as ``count`` if no weights were given.
        effective: the number of examples of equal weight that would be worth as much, $(\\sum w)^2 / \\sum w^2$.
        confidence: their mean confidence; NaN where the bin is empty.
        accuracy: the fraction of them that is classified correctly; NaN where the bin is empty.
    """

    edges: Tensor
    count: Tensor
    weight: Tensor
    effective: Tensor
    confidence: Tensor
    accuracy: Tensor

    @property
    def n(self) -> int:
        """The number of examples in all bins."""
        return int(self.count.sum())

    @property
    def share(self) -> Tensor:
        """The fraction of all examples in each bin."""
        return self.weight / self.weight.sum()

    @property
    def gap(self) -> Tensor:
        """Confidence minus accuracy in each bin: positive where the classifier is overconfident; NaN where empty."""
        return self.confidence - self.accuracy

    @property
    def ece(self) -> float:
        r"""The expected calibration error, $\sum_m \frac{n_m}{n} |\mathrm{acc}_m - \mathrm{conf}_m|$."""
        # An empty bin has weight zero, but 0 · NaN is NaN.
        filled = self.weight > 0
        return float((self.share[filled] * self.gap[filled].abs()).sum())

    @property
    def mce(self) -> float:
        """The largest gap; see `calibayes.metrics.mce`."""
        return float(self.gap[self.weight > 0].abs().max())

    @property
    def rms_calibration_error(self) -> float:
        """The root mean square gap; see `calibayes.metrics.rms_calibration_error`."""
        filled = self.weight > 0
        return float((self.share[filled] * self.gap[filled].square()).sum().sqrt())

    @property
    def ece_squared_debiased(self) -> float:
        """The debiased squared calibration error; see `calibayes.metrics.ece_squared_debiased`."""
        several = self.effective > 1 + 1e-9  # NaN where empty
        accuracy, trials = self.accuracy[several], self.effective[several]
        terms = self.gap[several].square() - accuracy * (1 - accuracy) / (trials - 1)
        return float((self.share[several] * terms).sum())

    def consistency_band(self, level: float = 0.95) -> tuple[Tensor, Tensor]:
        """The ranges in which the accuracies of all bins would lie, at this level, if the confidence were right.

        The number of right decisions among $n_m$ examples that are each right with probability $\\mathrm{conf}_m$ is
        binomial, and the bins are independent. Every range leaves out the same probability on either side, the largest one
        with which all bars together lie within at this level. So a single bar outside is evidence, however many bars there
        are. NaN where a bin is empty.

        Args:
            level: the probability that the accuracies of all bins lie within.
        """
        from scipy.stats import binom

        level, filled = fraction("level", level), self.weight > 0
        trials = self.effective[filled].round().clamp_min(1).numpy()
        distribution = binom(trials, self.confidence[filled].clamp(0, 1).numpy())
        # Between independent bins that are drawn from continuous distributions, and a single bin.
        smallest, largest = (1 - level ** (1 / len(trials))) / 2, (1 - level) / 2
        for _ in range(_HALVINGS):
            tail = (smallest + largest) / 2
            low, high = distribution.ppf(tail), distribution.ppf(1 - tail)
            within = (distribution.cdf(high) - distribution.cdf(low - 1)).prod()
            smallest, largest = (tail, largest) if within >= level else (smallest, tail)
        ends = torch.full((2, len(filled)), torch.nan, dtype=torch.float64)
        ends[:, filled] = torch.from_numpy(np.stack((distribution.ppf(smallest), distribution.ppf(1 - smallest))) / trials)
        return ends[0], ends[1]


def reliability_bins(
    probs: Array, targets: Array, bins: int = DEFAULT_BINS, *, weights: Array | None = None, check: bool = True
) -> ReliabilityBins:
    r"""Sort examples by confidence into bins of equal width, and average confidence and correctness in each.

    Bin $m$ of $1 … M$ holds the confidences in $((m-1)/M, m/M]$. Bins are closed on the right, so a confidence of 1 belongs
    to the last bin; a confidence of 0 belongs to the first. Edges are rounded to the type of ``probs`` before they are
    compared, so a float32 confidence of ``0.2`` lies *on* the edge 3/15 although, read as a float64 number, it is a
    little above it. Averages are taken in float64. Arguments as `ece`.

    Examples:
        >>> bins = reliability_bins(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]]), torch.tensor([0, 1, 1]), bins=5)
        >>> bins.count
        tensor([0, 0, 1, 1, 1])
        >>> bins.accuracy
        tensor([nan, nan, 1., 0., 1.], dtype=torch.float64)
    """
    predictions, bins = as_predictions(probs, targets, weights, check=check), positive_integer("bins", bins)
    edges = equal_width(bins)
    where = place(predictions.confidence, edges, predictions.probs.dtype)
    right = predictions.decision == predictions.targets
    split = torch.bincount(where + bins * right, minlength=2 * bins).view(2, bins)
    count = split.sum(0)
    if predictions.weights is None:
        weight = count.double()
        effective = torch.where(count > 0, weight, torch.nan)
        confidence, correct = torch.bincount(where, predictions.confidence, minlength=bins), split[1]
    else:
        w = predictions.weights
        weight = torch.bincount(where, w, minlength=bins)
        effective = weight.square() / torch.bincount(where, w.square(), minlength=bins)
        confidence, correct = (torch.bincount(where, w * each, minlength=bins) for each in (predictions.confidence, right))
    return ReliabilityBins(
        edges=edges, count=count, weight=weight, effective=effective, confidence=confidence / weight, accuracy=correct / weight
    )


def equal_width(bins: int) -> Tensor:
    """The edges $0, 1/M, …, 1$."""
    # Dividing integers rounds each edge once, unlike adding up a step or interpolating.
    return torch.arange(bins + 1, dtype=torch.float64) / bins


def place(values: Tensor, edges: Tensor, dtype: torch.dtype) -> Tensor:
    """The bin of each value: closed on the right, with edges rounded to ``dtype``, the type that the values came in."""
    return torch.bucketize(values, edges[1:-1].to(dtype).to(values.dtype), right=False)
