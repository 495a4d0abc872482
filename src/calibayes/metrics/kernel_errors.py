"""Kernel calibration errors of the decided class: exact over all pairs, with a test of "calibrated"."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from calibayes.calibration.kernel import kernel_features
from calibayes.checks import positive
from calibayes.metrics.calibration_test import calibration_p_value
from calibayes.metrics.confidence_cells import Cells, sorted_cells
from calibayes.metrics.prediction_arrays import Array, Predictions, as_predictions

__all__ = ["kce_p_value", "kce_squared", "mmce", "residual_features", "unbiased", "weighted_features", "wmmce"]

WIDTH = 0.4


def mmce(
    probs: Array, targets: Array, *, kernel_width: float = WIDTH, weights: Array | None = None, check: bool = True
) -> float:
    r"""The maximum mean calibration error of Kumar et al. (2018), over all pairs, with hard scores.

    $$\mathrm{MMCE} = \frac1n \Big( \sum_{ij} (c_i - r_i)(c_j - r_j) \, e^{-|r_i - r_j|/\gamma} \Big)^{1/2}$$
    The value of `calibayes.calibration.mmce` with ``scores="hard"``, which is the differentiable form
    (https://proceedings.mlr.press/v80/kumar18a.html).

    Args:
        probs: class probabilities, shape ``[n, K]`` or one column for two classes, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        kernel_width: $\gamma$.
        weights: how much each example counts.
        check: look at the values first; ``False`` when they are known to be good.

    Examples:
        >>> round(mmce(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]), torch.tensor([0, 1, 1])), 4)
        0.1757
    """
    cells = sorted_cells(as_predictions(probs, targets, weights, check=check))[0]
    return float(residual_features(cells, positive("kernel_width", kernel_width)).norm())


def wmmce(
    probs: Array, targets: Array, *, kernel_width: float = WIDTH, weights: Array | None = None, check: bool = True
) -> float:
    r"""The weighted maximum mean calibration error, eq. (weighted) of the paper, with hard scores; arguments as `mmce`.

    It is *not* zero for a calibrated classifier, unless half its decisions are right: see `calibayes.WMMCE`.

    Examples:
        >>> round(wmmce(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]), torch.tensor([0, 1, 1])), 4)
        0.6518
    """
    cells = sorted_cells(as_predictions(probs, targets, weights, check=check))[0]
    return float(weighted_features(cells, positive("kernel_width", kernel_width)).norm())


def kce_squared(
    probs: Array, targets: Array, *, kernel_width: float = WIDTH, weights: Array | None = None, check: bool = True
) -> float:
    r"""The squared kernel calibration error of the decided class, unbiased; arguments as `mmce`.

    $$\frac{1}{n(n-1)} \sum_{i \ne j} (c_i - r_i)(c_j - r_j) \, e^{-|r_i - r_j|/\gamma}$$
    Its expectation is the square of what MMCE tends to, zero for a calibrated classifier; chance makes it negative more
    often than positive there (Widmann et al. 2019, https://arxiv.org/abs/1910.11385). NaN for a single example.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1], [0.9, 0.1]])
        >>> round(kce_squared(probs, torch.tensor([0, 1])), 6)  # one pair: 0.1 · (-0.9)
        -0.09
    """
    found = as_predictions(probs, targets, weights, check=check)
    cells = sorted_cells(found)[0]
    features = residual_features(cells, positive("kernel_width", kernel_width))
    return unbiased(float(features.square().sum()), *diagonal(found))


def kce_p_value(
    probs: Array,
    targets: Array,
    *,
    kernel_width: float = WIDTH,
    weights: Array | None = None,
    seed: int = 0,
    check: bool = True,
) -> float:
    r"""The p-value of "this classifier is calibrated": how often a calibrated one would look as bad as this one.

    The test of `kce_squared` (Widmann et al. 2019, https://arxiv.org/abs/1910.11385) over all pairs of examples. Right and
    wrong are redrawn 999 times from the confidences, as they would be if the classifier were calibrated, so the p-value is
    exact for any number of examples, and 0.001 is the smallest. It does not depend on the order of the examples. NaN for a
    single example. See `calibayes.metrics.calibration_test`.

    Args:
        probs: class probabilities, shape ``[n, K]`` or one column for two classes, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        kernel_width: $\gamma$.
        weights: how much each example counts.
        seed: of the draws.
        check: look at the values first; ``False`` when they are known to be good.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1]]).expand(1000, 2)
        >>> kce_p_value(probs, torch.tensor([0] * 500 + [1] * 500))  # says 0.9, is right 0.5
        0.001
    """
    cells = sorted_cells(as_predictions(probs, targets, weights, check=check))[0]
    return calibration_p_value(cells, cells.mass.square(), positive("kernel_width", kernel_width), seed)


def residual_features(cells: Cells, width: float) -> Tensor:
    """A vector whose length is the MMCE."""
    return kernel_features(cells.r, cells.residual, width)


def weighted_features(cells: Cells, width: float) -> Tensor:
    """A vector whose length is the WMMCE; a group without members contributes nothing."""
    right, wrong = (mass / torch.where(mass.sum(-1, keepdim=True) > 0, mass.sum(-1, keepdim=True), 1.0)
                    for mass in (cells.right, cells.wrong))  # fmt: skip
    return kernel_features(cells.r, right * (1 - cells.r) - wrong * cells.r, width)


def diagonal(found: Predictions) -> tuple[float, float]:
    r"""$\sum w_i^2 (c_i - r_i)^2$ and $\sum w_i^2$, as shares of the squared total weight: what pairs $i = j$ are worth."""
    part = (found.mass / found.mass.sum()).square()
    return float((part * (found.correct - found.confidence).square()).sum()), float(part.sum())


def unbiased(form: float, own_pairs: float, own_weight: float) -> float:
    """The quadratic form over all pairs without those of an example with itself."""
    return (form - own_pairs) / (1 - own_weight) if own_weight < 1 - 1e-12 else math.nan
