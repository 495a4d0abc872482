"""Abstaining on low confidence: the error rate over the share of examples that are answered."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from calibayes.checks import fraction
from calibayes.metrics.confidence_cells import Cells, sorted_cells
from calibayes.metrics.prediction_arrays import Array, as_predictions

__all__ = ["RiskCoverage", "aurc", "coverage_at_accuracy", "risk_coverage"]


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """The error rate among the most confident examples, from few to all; one point for each confidence that occurs.

    Attributes:
        coverage: the share of examples that are answered, ascending to 1.
        risk: the share of wrong decisions among them.
        threshold: the confidence at which answers begin.
        aurc: the area under the curve, the mean of the risk over all coverages.
    """

    coverage: Tensor
    risk: Tensor
    threshold: Tensor
    aurc: float

    def coverage_at(self, accuracy: float) -> float:
        """The largest share of examples that can be answered with at least this accuracy; 0 if none can."""
        enough = 1 - self.risk >= fraction("accuracy", accuracy) - 1e-12
        return float(self.coverage[enough].max()) if bool(enough.any()) else 0.0


def risk_coverage(probs: Array, targets: Array, *, weights: Array | None = None, check: bool = True) -> RiskCoverage:
    r"""The risk–coverage curve of a classifier that abstains below a confidence threshold; arguments as `accuracy`.

    Examples of the same confidence are answered together or not at all. See El-Yaniv and Wiener, "On the Foundations of
    Noise-free Selective Classification" (2010).

    Examples:
        >>> curve = risk_coverage(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]), torch.tensor([0, 1, 1]))
        >>> [round(value, 3) for value in curve.risk.tolist()]
        [0.0, 0.5, 0.333]
        >>> round(curve.coverage_at(0.9), 3)
        0.333
    """
    cells = sorted_cells(as_predictions(probs, targets, weights, check=check))[0]
    return curve(cells, int(cells.mass.count_nonzero()))


def aurc(probs: Array, targets: Array, *, weights: Array | None = None, check: bool = True) -> float:
    r"""The area under the risk–coverage curve: small when errors have low confidence; arguments as `accuracy`.

    The mean over $k = 1 … n$ of the error rate among the $k$ most confident examples; where confidences are tied, the
    mean over all orders of the tied ones. With weights, the total weight stands for $n$ examples. See Geifman, Uziel and
    El-Yaniv, "Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers" (2019, https://arxiv.org/abs/1805.08206).

    Examples:
        >>> round(aurc(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]), torch.tensor([0, 1, 1])), 4)
        0.2778
    """
    predictions = as_predictions(probs, targets, weights, check=check)
    return float(area(sorted_cells(predictions)[0], int(predictions.mass.count_nonzero())))


def coverage_at_accuracy(
    probs: Array, targets: Array, accuracy: float = 0.95, *, weights: Array | None = None, check: bool = True
) -> float:
    """The largest share of examples, the most confident ones, that can be answered with at least this accuracy.

    Other arguments as `calibayes.metrics.accuracy`.

    Examples:
        >>> coverage_at_accuracy(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]), torch.tensor([0, 0, 1, 0]))
        0.75
    """
    cells = sorted_cells(as_predictions(probs, targets, weights, check=check))[0]
    return float(largest_coverage(cells, fraction("accuracy", accuracy)))


def curve(cells: Cells, n: int) -> RiskCoverage:
    """The curve of cells without leading axes, whose weight stands for ``n`` examples."""
    coverage, risk, ends = _by_descending_confidence(cells)
    return RiskCoverage(coverage[ends], risk[ends], cells.r.flip(-1)[ends], float(area(cells, n)))


def area(cells: Cells, n: int) -> Tensor:
    """The AURC, the weight of all examples standing for ``n`` of them."""
    unit = n / cells.total
    mass, wrong = _tied(cells, (cells.mass * unit).flip(-1)), _tied(cells, (cells.wrong * unit).flip(-1))
    after, errors_after = mass.cumsum(-1), wrong.cumsum(-1)
    before, errors = after - mass, errors_after - wrong
    rate = wrong / torch.where(mass > 0, mass, 1.0)
    # The sum of (errors + rate·j) / (before + j) over j = 1 … mass.
    harmonic = torch.digamma(after + 1) - torch.digamma(before.clamp_min(0) + 1)
    return (rate * mass + (errors - rate * before) * harmonic).sum(-1) / n


def largest_coverage(cells: Cells, accuracy: float) -> Tensor:
    """The largest coverage at which the accuracy is reached."""
    coverage, risk, ends = _by_descending_confidence(cells)
    enough = (1 - risk >= accuracy - 1e-12) & ends
    return torch.where(enough, coverage, 0.0).amax(-1)


def _by_descending_confidence(cells: Cells) -> tuple[Tensor, Tensor, Tensor]:
    """Coverage and risk with each further cell, and which cells end a run of the same confidence."""
    mass = cells.mass.flip(-1).cumsum(-1)
    risk = cells.wrong.flip(-1).cumsum(-1) / torch.where(mass > 0, mass, 1.0)
    r = cells.r.flip(-1)
    ends = torch.ones_like(r, dtype=torch.bool)
    ends[:-1] = r[:-1] > r[1:]
    return mass / cells.total, risk, ends & (mass > 0) if mass.dim() == 1 else ends


def _tied(cells: Cells, values: Tensor) -> Tensor:
    """Sums over runs of the same confidence, in descending order."""
    r = cells.r.flip(-1)
    group = torch.cat((r.new_zeros(1), (r[:-1] > r[1:]).to(r))).cumsum(0).long()
    count = int(group[-1]) + 1
    if count == len(r):
        return values
    return values.new_zeros(*values.shape[:-1], count).index_add_(-1, group, values)
