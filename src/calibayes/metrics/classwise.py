"""The probability of every class against its frequency: classwise ECE, and the parts of the Brier score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from calibayes.checks import positive_integer
from calibayes.metrics.bins import DEFAULT_BINS, equal_width, place
from calibayes.metrics.prediction_arrays import Array, Predictions, as_predictions
from calibayes.metrics.proper_scores import brier

__all__ = ["BrierParts", "ClassBins", "brier_decomposition", "class_bins", "class_places", "ece_classwise"]

_BLOCK = 1 << 21  # numbers binned at a time


@dataclass(frozen=True, eq=False)
class ClassBins:
    r"""For each class $k$ and bin $m$ of the probability of that class: sums over the examples in it.

    The arrays may have leading axes, one entry for each replicate of a bootstrap.
    """

    weight: Tensor  # Σ w, shape [..., K, M]
    predicted: Tensor  # Σ w p(k)
    observed: Tensor  # Σ w 1[y = k]

    @property
    def total(self) -> Tensor:
        """The weight of all examples, shape ``[..., 1, 1]``; each is in one bin of every class."""
        return self.weight[..., :1, :].sum(-1, keepdim=True)

    @property
    def residual(self) -> Tensor:
        """Observed minus predicted, as a share of the total weight."""
        return (self.observed - self.predicted) / self.total

    @property
    def inverse_root(self) -> Tensor:
        """1/√share of each bin, and 0 where it is empty."""
        return torch.where(self.weight > 0, self.weight / self.total, torch.inf).rsqrt()

    @property
    def reliability(self) -> Tensor:
        r"""A vector whose squared length is the reliability, $\sum_{km} w_{km} (\bar o_{km} - \bar p_{km})^2$."""
        return self.residual * self.inverse_root

    @property
    def resolution(self) -> Tensor:
        r"""A vector whose squared length is the resolution, $\sum_{km} w_{km} (\bar o_{km} - \bar o_k)^2$."""
        part, seen = self.weight / self.total, self.observed / self.total
        return (seen - part * seen.sum(-1, keepdim=True)) * self.inverse_root

    @property
    def frequency(self) -> Tensor:
        """The fraction of the data in each class, shape ``[..., K]``."""
        return (self.observed / self.total).sum(-1)

    @property
    def uncertainty(self) -> Tensor:
        r"""$\sum_k \bar o_k (1 - \bar o_k)$: the Brier score of always answering with the class frequencies."""
        return (self.frequency * (1 - self.frequency)).sum(-1)

    @property
    def ece_by_class(self) -> Tensor:
        """The expected calibration error of each class, shape ``[..., K]``."""
        return self.residual.abs().sum(-1)


class BrierParts(NamedTuple):
    """The parts of the Brier score: ``reliability - resolution + uncertainty + within_bins``.

    Attributes:
        reliability: how far the probabilities are from the observed frequencies; smaller is better.
        resolution: how far the observed frequencies differ from bin to bin; larger is better.
        uncertainty: the score of always answering with the class frequencies.
        within_bins: the rest, because probabilities differ within a bin; it vanishes as bins become narrow.
    """

    reliability: float
    resolution: float
    uncertainty: float
    within_bins: float


def ece_classwise(
    probs: Array, targets: Array, bins: int = DEFAULT_BINS, *, weights: Array | None = None, check: bool = True
) -> float:
    r"""The classwise calibration error: how far the probability of *every* class is from its frequency; arguments as `ece`.

    For each class $k$ the examples are binned by $p(k|x)$, and
    $$\frac{1}{K} \sum_k \sum_m \frac{n_{km}}{n} \, |\bar o_{km} - \bar p_{km}|,$$
    with $\bar o$ the frequency of class $k$ in the bin and $\bar p$ the mean of its probability (Kull et al. 2019,
    https://arxiv.org/abs/1910.12656).

    Examples:
        >>> round(ece_classwise(torch.tensor([[0.8, 0.2], [0.4, 0.6]]), torch.tensor([0, 1])), 6)
        0.3
    """
    predictions = as_predictions(probs, targets, weights, check=check)
    return float(class_bins(predictions, positive_integer("bins", bins)).ece_by_class.mean())


def brier_decomposition(
    probs: Array, targets: Array, bins: int = DEFAULT_BINS, *, weights: Array | None = None, check: bool = True
) -> BrierParts:
    r"""The Brier score as reliability, resolution and uncertainty (Murphy 1973), class by class; arguments as `ece`.

    Murphy's paper is "A New Vector Partition of the Probability Score". With the bins of `ece_classwise`, summed over classes,
    $$\mathrm{Brier} = \sum_{km} \tfrac{n_{km}}{n} (\bar o_{km} - \bar p_{km})^2
       - \sum_{km} \tfrac{n_{km}}{n} (\bar o_{km} - \bar o_k)^2 + \sum_k \bar o_k (1 - \bar o_k) + \text{within bins}.$$

    Examples:
        >>> parts = brier_decomposition(torch.tensor([[0.8, 0.2], [0.4, 0.6]]), torch.tensor([0, 1]))
        >>> {name: round(value, 6) for name, value in parts._asdict().items() if name != "within_bins"}
        {'reliability': 0.2, 'resolution': 0.5, 'uncertainty': 0.5}
    """
    predictions = as_predictions(probs, targets, weights, check=check)
    sums = class_bins(predictions, positive_integer("bins", bins))
    reliability, resolution = float(sums.reliability.square().sum()), float(sums.resolution.square().sum())
    uncertainty = float(sums.uncertainty)
    score = brier(predictions.probs, predictions.targets, weights=predictions.weights, check=False)
    return BrierParts(reliability, resolution, uncertainty, score - (reliability - resolution + uncertainty))


def class_bins(predictions: Predictions, bins: int) -> ClassBins:
    """The sums over all examples."""
    size = predictions.classes * bins
    sums = torch.zeros(3, size, dtype=torch.float64)
    for part in predictions.parts(_BLOCK // predictions.classes):
        where, true = class_places(part, bins)
        weight = None if part.weights is None else part.weights[:, None].expand(part.probs.shape).reshape(-1)
        predicted = part.probs.double().reshape(-1)
        sums[0] += torch.bincount(where, weight, minlength=size)
        sums[1] += torch.bincount(where, predicted if weight is None else predicted * weight, minlength=size)
        sums[2] += torch.bincount(true, part.weights, minlength=size)
    return ClassBins(*sums.view(3, predictions.classes, bins))


def class_places(part: Predictions, bins: int) -> tuple[Tensor, Tensor]:
    """Return where each probability, and where each example's true class, is counted in a flattened table ``[K, M]``."""
    where = place(part.probs, equal_width(bins), part.probs.dtype)
    where += torch.arange(part.classes) * bins
    return where.view(-1), where.gather(-1, part.targets[:, None])[:, 0]
