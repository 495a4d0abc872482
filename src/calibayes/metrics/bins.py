"""The one place where confidences are sorted into bins."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from calibayes.metrics.arrays import Array, as_predictions, check_bins

__all__ = ["ReliabilityBins", "reliability_bins"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ReliabilityBins:
    """What a reliability diagram shows: for each bin of confidence, how many examples, how sure, and how often right.

    Attributes:
        edges: the ``M + 1`` edges $0, 1/M, …, 1$, in float64.
        count: the number of examples in each of the ``M`` bins.
        confidence: their mean confidence; NaN where the bin is empty.
        accuracy: the share of them that is classified correctly; NaN where the bin is empty.
    """

    edges: Tensor
    count: Tensor
    confidence: Tensor
    accuracy: Tensor

    @property
    def n(self) -> int:
        """The number of examples in all bins."""
        return int(self.count.sum())

    @property
    def gap(self) -> Tensor:
        """Confidence minus accuracy in each bin: positive where the classifier is too sure; NaN where empty."""
        return self.confidence - self.accuracy

    @property
    def ece(self) -> float:
        r"""The expected calibration error, $\sum_m \frac{n_m}{n} |\mathrm{acc}_m - \mathrm{conf}_m|$."""
        # An empty bin has weight zero, but 0 · NaN is NaN.
        filled = self.count > 0
        weight = self.count[filled].double() / self.n
        return float((weight * self.gap[filled].abs()).sum())


def reliability_bins(probs: Array, targets: Array, bins: int = 15, *, check: bool = True) -> ReliabilityBins:
    r"""Sort examples by confidence into bins of equal width, and average confidence and correctness in each.

    Bin $m$ of $1 … M$ holds the confidences in $((m-1)/M, m/M]$. Closed on the right, so a confidence of 1 belongs to
    the last bin; a confidence of 0 belongs to the first. Edges are rounded to the type of ``probs`` before they are
    compared, so a float32 confidence of ``0.2`` lies *on* the edge 3/15 although, read as a float64 number, it is a
    little above it. Averages are taken in float64.

    Args:
        probs: class probabilities, shape ``[n, K]``, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        bins: the number $M$ of bins.
        check: look at the values first; ``False`` when they are known to be good.

    Example:
        >>> bins = reliability_bins(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]]), torch.tensor([0, 1, 1]), bins=5)
        >>> bins.count
        tensor([0, 0, 1, 1, 1])
        >>> bins.accuracy
        tensor([nan, nan, 1., 0., 1.], dtype=torch.float64)
    """
    bins = check_bins(bins)
    probs, targets = as_predictions(probs, targets, check=check)
    decision = probs.argmax(-1)
    largest = probs.gather(-1, decision[:, None])[:, 0]
    # Dividing integers rounds each edge once, which adding up a step or interpolating does not.
    edges = torch.arange(bins + 1, dtype=torch.float64) / bins
    rounded = edges[1:-1].to(largest.dtype).double()
    confidence = largest.double()
    place = torch.bucketize(confidence, rounded, right=False)
    count = torch.bincount(place, minlength=bins)
    correct = (decision == targets).double()
    return ReliabilityBins(
        edges=edges,
        count=count,
        confidence=torch.bincount(place, confidence, minlength=bins) / count,
        accuracy=torch.bincount(place, correct, minlength=bins) / count,
    )
