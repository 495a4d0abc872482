"""The one place where confidences are sorted into bins."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from calibayes.checks import fraction, positive_integer
from calibayes.metrics.prediction_arrays import Array, Predictions, as_predictions

__all__ = ["ReliabilityBins", "binned", "equal_width", "place", "reliability_bins"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ReliabilityBins:
    """The bins of a reliability diagram: for each bin, the number of examples, their mean confidence and their accuracy.

    Attributes:
        edges: the ``M + 1`` edges $0, 1/M, …, 1$, in float64.
        count: the number of examples in each of the ``M`` bins.
        weight: their weights added up: the same as ``count`` where no weights were given.
        effective: how many examples of equal weight would be worth as much, $(\\sum w)^2 / \\sum w^2$.
        confidence: their mean confidence; NaN where the bin is empty.
        accuracy: the share of them that is classified correctly; NaN where the bin is empty.
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

    def consistency_band(self, level: float = 0.95) -> tuple[Tensor, Tensor]:
        """The range in which the accuracy of each bin would lie, at this level, if the confidence were right (NaN where empty).

        The number of right decisions among $n_m$ examples that are each right with probability $\\mathrm{conf}_m$ is
        binomial. A bar outside the band is evidence against the confidence of its bin; of many bars, some lie outside
        by chance.

        Args:
            level: the probability of lying within, bin by bin.
        """
        from scipy.stats import binom

        tail = (1 - fraction("level", level)) / 2
        trials = self.effective.round().clamp_min(1).numpy()
        sure = self.confidence.clamp(0, 1).numpy()
        low, high = (torch.from_numpy(binom.ppf(q, trials, sure) / trials) for q in (tail, 1 - tail))
        empty = self.weight == 0
        return low.masked_fill(empty, torch.nan), high.masked_fill(empty, torch.nan)


def reliability_bins(
    probs: Array, targets: Array, bins: int = 15, *, weights: Array | None = None, check: bool = True
) -> ReliabilityBins:
    r"""Sort examples by confidence into bins of equal width, and average confidence and correctness in each.

    Bin $m$ of $1 … M$ holds the confidences in $((m-1)/M, m/M]$. Closed on the right, so a confidence of 1 belongs to
    the last bin; a confidence of 0 belongs to the first. Edges are rounded to the type of ``probs`` before they are
    compared, so a float32 confidence of ``0.2`` lies *on* the edge 3/15 although, read as a float64 number, it is a
    little above it. Averages are taken in float64.

    Args:
        probs: class probabilities, shape ``[n, K]`` or one column for two classes, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        bins: the number $M$ of bins.
        weights: how much each example counts.
        check: look at the values first; ``False`` when they are known to be good.

    Examples:
        >>> bins = reliability_bins(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]]), torch.tensor([0, 1, 1]), bins=5)
        >>> bins.count
        tensor([0, 0, 1, 1, 1])
        >>> bins.accuracy
        tensor([nan, nan, 1., 0., 1.], dtype=torch.float64)
    """
    return binned(as_predictions(probs, targets, weights, check=check), positive_integer("bins", bins))


def binned(found: Predictions, bins: int) -> ReliabilityBins:
    """`reliability_bins` of predictions that are already checked."""
    edges = equal_width(bins)
    where = place(found.confidence, edges, found.probs.dtype)
    right = found.decision == found.targets
    split = torch.bincount(where + bins * right, minlength=2 * bins).view(2, bins)
    count = split.sum(0)
    if found.weights is None:
        weight = count.double()
        effective = torch.where(count > 0, weight, torch.nan)
        sure, correct = torch.bincount(where, found.confidence, minlength=bins), split[1]
    else:
        w = found.weights
        weight = torch.bincount(where, w, minlength=bins)
        effective = weight.square() / torch.bincount(where, w.square(), minlength=bins)
        sure, correct = (torch.bincount(where, w * each, minlength=bins) for each in (found.confidence, right))
    return ReliabilityBins(
        edges=edges, count=count, weight=weight, effective=effective, confidence=sure / weight, accuracy=correct / weight
    )


def equal_width(bins: int) -> Tensor:
    """The edges $0, 1/M, …, 1$."""
    # Dividing integers rounds each edge once, which adding up a step or interpolating does not.
    return torch.arange(bins + 1, dtype=torch.float64) / bins


def place(values: Tensor, edges: Tensor, dtype: torch.dtype) -> Tensor:
    """The bin of each value: closed on the right, edges rounded to ``dtype``, the type that the values were given in."""
    return torch.bucketize(values, edges[1:-1].to(dtype).to(values.dtype), right=False)
