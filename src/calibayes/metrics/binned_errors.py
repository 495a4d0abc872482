"""Calibration errors in bins: the distance between confidence and the fraction of right decisions."""

from __future__ import annotations

from calibayes.checks import positive_integer
from calibayes.metrics.bins import DEFAULT_BINS, reliability_bins
from calibayes.metrics.confidence_cells import equal_mass_bins, equal_mass_residuals, sorted_cells
from calibayes.metrics.prediction_arrays import Array, as_predictions

__all__ = ["ece", "ece_equal_mass", "ece_squared_debiased", "mce", "rms_calibration_error"]


def ece(probs: Array, targets: Array, bins: int = DEFAULT_BINS, *, weights: Array | None = None, check: bool = True) -> float:
    r"""The expected calibration error: the mean distance between confidence and accuracy over the examples.

    The examples are put into $M$ bins of equal width by their confidence $r = \max_y p(y|x)$, and
    $$\mathrm{ECE} = \sum_{m=1}^{M} \frac{n_m}{n} \, |\mathrm{acc}_m - \mathrm{conf}_m|.$$
    Bins are closed on the right: 0 belongs to the first, 1 to the last, and a confidence on an edge to the bin that the
    edge closes (see `reliability_bins`). It is computed in float64. See Naeini, Cooper and Hauskrecht, "Obtaining Well
    Calibrated Probabilities Using Bayesian Binning" (2015), and Guo et al. (2017, https://arxiv.org/abs/1706.04599).

    A small value alone means little: a classifier that always answers with the class frequencies has an ECE near zero.
    Read it beside the accuracy, `nll` and `brier`; `evaluate` gives them together. And chance alone makes it positive:
    for a perfectly calibrated classifier it is about $\sum_m \sqrt{2 \, \mathrm{acc}_m (1-\mathrm{acc}_m) n_m / \pi} / n$.
    The interval of `evaluate` takes that into account.

    Args:
        probs: class probabilities, shape ``[n, K]`` or one column for two classes, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        bins: the number $M$ of bins.
        weights: how much each example counts.
        check: look at the values first; ``False`` when they are known to be good.

    Examples:
        >>> round(ece(torch.tensor([[0.95, 0.05], [1.0, 0.0]]), torch.tensor([0, 1])), 6)
        0.475
    """
    return reliability_bins(probs, targets, bins, weights=weights, check=check).ece


def mce(probs: Array, targets: Array, bins: int = DEFAULT_BINS, *, weights: Array | None = None, check: bool = True) -> float:
    r"""The largest gap between confidence and accuracy in any bin: the maximum calibration error; arguments as `ece`.

    A bin of one example has a gap of about its confidence or one minus it, so on little data this says little. See Guo et al.
    (2017, https://arxiv.org/abs/1706.04599).

    Examples:
        >>> round(mce(torch.tensor([[0.95, 0.05], [1.0, 0.0], [0.3, 0.7]]), torch.tensor([0, 0, 0])), 6)
        0.7
    """
    return reliability_bins(probs, targets, bins, weights=weights, check=check).mce


def rms_calibration_error(
    probs: Array, targets: Array, bins: int = DEFAULT_BINS, *, weights: Array | None = None, check: bool = True
) -> float:
    r"""The root mean square of the gap between confidence and accuracy over the bins; arguments as `ece`.

    $$\mathrm{RMSCE} = \Big(\sum_m \frac{n_m}{n} (\mathrm{acc}_m - \mathrm{conf}_m)^2\Big)^{1/2}$$

    Examples:
        >>> round(rms_calibration_error(torch.tensor([[0.95, 0.05], [0.3, 0.7]]), torch.tensor([0, 0])), 4)
        0.4962
    """
    return reliability_bins(probs, targets, bins, weights=weights, check=check).rms_calibration_error


def ece_squared_debiased(
    probs: Array, targets: Array, bins: int = DEFAULT_BINS, *, weights: Array | None = None, check: bool = True
) -> float:
    r"""The squared calibration error without most of what chance adds to it (Kumar et al. 2019); arguments as `ece`.

    See "Verified Uncertainty Calibration" (https://arxiv.org/abs/1909.10155).

    $$\sum_m \frac{n_m}{n} \Big[ (\mathrm{acc}_m - \mathrm{conf}_m)^2
      - \frac{\mathrm{acc}_m (1 - \mathrm{acc}_m)}{n_m - 1} \Big]$$
    It can be negative: the true value then cannot be told from zero. A bin with a single example says nothing about its
    spread, and is left out of the sum. With weights, $n_m$ is the effective number of examples.

    Examples:
        >>> probs = torch.tensor([[0.7, 0.3]]).expand(10, 2)
        >>> round(ece_squared_debiased(probs, torch.tensor([0] * 7 + [1] * 3)), 6)  # right by luck, below zero
        -0.023333
    """
    return reliability_bins(probs, targets, bins, weights=weights, check=check).ece_squared_debiased


def ece_equal_mass(
    probs: Array, targets: Array, bins: int = DEFAULT_BINS, *, weights: Array | None = None, check: bool = True
) -> float:
    r"""The expected calibration error with bins that hold the same number of examples; arguments as `ece`.

    Also called adaptive ECE (Nixon et al. 2019, https://arxiv.org/abs/1904.01685). Where confidences crowd near 1, bins of
    equal width put nearly all examples into one; these do not. Examples of the same confidence stay in one bin, the one
    that the middle of their ranks falls into.

    Examples:
        >>> round(ece_equal_mass(torch.tensor([[0.95, 0.05], [1.0, 0.0]]), torch.tensor([0, 1]), bins=2), 6)
        0.525
    """
    cells = sorted_cells(as_predictions(probs, targets, weights, check=check))[0]
    places = equal_mass_bins(cells, positive_integer("bins", bins))
    return float(equal_mass_residuals(cells.residual, places, int(bins)).abs().sum())
