"""Examples in the order of their confidence, alone or gathered into fine cells: all that a calibration error sees."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from calibayes.metrics.prediction_arrays import Predictions

__all__ = ["Cells", "equal_mass_bins", "equal_mass_residuals", "sorted_cells"]


@dataclass(frozen=True, eq=False)
class Cells:
    r"""The weight of right and of wrong decisions at each confidence.

    A cell is one example, or many of nearly the same confidence. The masses may have leading axes, one entry for each
    replicate of a bootstrap: the confidences, and with them the order, are the same for all.
    """

    r: Tensor  # the confidence of each cell, ascending, shape [C]
    right: Tensor  # the weight of the right decisions in it, shape [..., C]
    wrong: Tensor  # the weight of the wrong ones, of the same shape

    @property
    def mass(self) -> Tensor:
        """The weight of each cell."""
        return self.right + self.wrong

    @property
    def total(self) -> Tensor:
        """The weight of all cells, shape ``[..., 1]``."""
        return (self.right.sum(-1) + self.wrong.sum(-1)).unsqueeze(-1)

    @property
    def residual(self) -> Tensor:
        r"""Correctness minus confidence, $\sum_i w_i (c_i - r_i)$ in each cell, as a share of the total weight."""
        return (self.right - self.mass * self.r) / self.total


def sorted_cells(predictions: Predictions) -> tuple[Cells, Tensor]:
    """Return one cell per example, and the example that each cell is.

    Ties are sorted by correctness, and then by weight, so that the same examples in another order give the same cells.
    """
    weights, correct = predictions.weights, predictions.correct
    order = torch.arange(len(predictions)) if weights is None else weights.argsort(stable=True)
    right = correct[order] > 0
    order = torch.cat((order[~right], order[right]))
    r, place = predictions.confidence[order].sort(stable=True)
    order = order[place]
    weight = predictions.mass[order]
    right = weight * correct[order]
    return Cells(r, right, weight - right), order


def equal_mass_bins(cells: Cells, bins: int) -> Tensor:
    """The bin of each cell, of equal mass: by the middle of the mass of its confidence, so ties stay together."""
    after = cells.mass.cumsum(-1)
    first = torch.ones_like(cells.r, dtype=torch.bool)
    first[1:] = cells.r.diff() > 0
    group = first.cumsum(0) - 1
    end = after.new_zeros(int(group[-1]) + 1).scatter_reduce_(0, group, after, "amax", include_self=False)
    begin = torch.cat((end.new_zeros(1), end[:-1]))
    middle = (begin + end) / (2 * end[-1])
    return (middle * bins).floor().long().clamp(0, bins - 1)[group]


def equal_mass_residuals(residual: Tensor, places: Tensor, bins: int) -> Tensor:
    """Residuals of cells, shape ``[..., C]``, added up in their bins; the sum of the absolute values is the error."""
    if residual.dim() == 1:
        return torch.bincount(places, residual, minlength=bins)
    return residual @ torch.nn.functional.one_hot(places, bins).to(residual)
