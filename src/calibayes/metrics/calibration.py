"""Errors of calibration: how far confidence is from the share of right decisions."""

from __future__ import annotations

from calibayes.metrics.arrays import Array
from calibayes.metrics.bins import reliability_bins

__all__ = ["ece"]


def ece(probs: Array, targets: Array, bins: int = 15, *, check: bool = True) -> float:
    r"""How far confidence is from accuracy, on average over the examples: the expected calibration error.

    The examples are put into $M$ bins of equal width by their confidence $r = \max_y p(y|x)$, and
    $$\mathrm{ECE} = \sum_{m=1}^{M} \frac{n_m}{n} \, |\mathrm{acc}_m - \mathrm{conf}_m|.$$
    Bins are closed on the right: 0 belongs to the first, 1 to the last, and a confidence on an edge to the bin that the
    edge closes (see `reliability_bins`). It is computed in float64.

    A small value alone says little: a classifier that always answers with the class frequencies has an ECE near zero.
    Read it beside the accuracy, `nll` and `brier`; `evaluate` gives them together.

    Args:
        probs: class probabilities, shape ``[n, K]``, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        bins: the number $M$ of bins.
        check: look at the values first; ``False`` when they are known to be good.

    Example:
        >>> import torch
        >>> round(ece(torch.tensor([[0.95, 0.05], [1.0, 0.0]]), torch.tensor([0, 1])), 6)
        0.475
    """
    return reliability_bins(probs, targets, bins, check=check).ece
