"""Differentiable calibration measures with soft bins."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass

import torch
from torch import Tensor

from calibayes.calibration.measures import ScoredMeasure, shares
from calibayes.checks import is_real, positive, positive_integer
from calibayes.errors import InvalidArgumentError

__all__ = ["DECE", "SBECE"]


@dataclass(frozen=True, kw_only=True)
class _BinnedMeasure(ScoredMeasure, ABC):
    bins: int = 15
    temperature: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_integer("bins", self.bins)
        positive("temperature", self.temperature)


@dataclass(frozen=True, kw_only=True)
class DECE(_BinnedMeasure):
    r"""The differentiable expected calibration error of Bohdal et al. (2021, https://arxiv.org/abs/2106.09613).

    Example $i$ belongs to bin $m$ of $M$ with membership $o_{im}$, a softmax over bins at a temperature $T$ whose
    borders are the equal-width ones, $o_{im} \propto \exp\big((m r_i - \sum_{l<m} l/M)/T\big)$ for $m = 1 … M$, and

    $$ \mathrm{DECE} = \sum_m \Big| \frac1n \sum_i o_{im} (c_i - r_i) \Big| . $$

    As $T \to 0$ with hard scores this is the ECE.

    Attributes:
        bins: $M$.
        temperature: $T$.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
        >>> round(float(DECE(mode="hard", temperature=1e-6)(probs, torch.tensor([0, 1, 1]))), 4)
        0.4
    """

    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        m = torch.arange(1, self.bins + 1, dtype=r.dtype, device=r.device)
        borders = m * (m - 1) / (2 * self.bins)  # the sum of l/M over l < m
        members = torch.softmax((r.unsqueeze(-1) * m - borders) / self.temperature, dim=-1)
        # Not a matrix product: autocast would take that in half precision.
        gaps = (((c - r) * shares(r, weights)).unsqueeze(-1) * members).sum(-2)
        return gaps.abs().sum(-1)


@dataclass(frozen=True, kw_only=True)
class SBECE(_BinnedMeasure):
    r"""The soft-binned expected calibration error of Karandikar et al. (2021, https://arxiv.org/abs/2108.00106).

    Example $i$ belongs to bin $j$ of $M$, with centre $\xi_j$, with membership
    $u_{ij} \propto \exp\big(-(r_i - \xi_j)^2/T\big)$. With $S_j = \sum_i u_{ij}$ and the soft means $\mathrm{conf}_j$ of
    $r$ and $\mathrm{acc}_j$ of $c$ in a bin,

    $$ \mathrm{SBECE}_p = \Big( \sum_j \frac{S_j}{n} \big| \mathrm{acc}_j - \mathrm{conf}_j \big|^p \Big)^{1/p} . $$

    Attributes:
        bins: $M$.
        temperature: $T$.
        norm: $p \ge 1$.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
        >>> round(float(SBECE(mode="hard", temperature=1e-6)(probs, torch.tensor([0, 1, 1]))), 4)
        0.4967
    """

    norm: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_real(self.norm) or not 1 <= self.norm < float("inf"):
            raise InvalidArgumentError(f"Expected `norm` to be a finite number of at least 1, but got {self.norm!r}.")

    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        centres = (torch.arange(self.bins, dtype=r.dtype, device=r.device) + 0.5) / self.bins
        members = torch.softmax(-(r.unsqueeze(-1) - centres).square() / self.temperature, dim=-1)
        # Not a matrix product: autocast would take that in half precision.
        each = shares(r, weights)
        share = members * (each.unsqueeze(-1) if isinstance(each, Tensor) else each)
        sizes = share.sum(-2)
        gaps = (share * (c - r).unsqueeze(-1)).sum(-2) / sizes.clamp_min(torch.finfo(r.dtype).tiny)
        total = (sizes * gaps.abs() ** self.norm).sum(-1)
        # The root has an infinite slope at zero, where the measure is smallest and its gradient zero.
        some = total > 0
        return torch.where(some, torch.where(some, total, 1.0) ** (1 / self.norm), 0.0)
