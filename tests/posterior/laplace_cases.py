"""A small network with data, and its last-layer Laplace approximation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import calibayes as cb

__all__ = ["KINDS", "WIDE", "Net", "covariance", "data", "fitted", "precision"]

KINDS = ["full", "kronecker"]
WIDE = torch.float64


class Net(nn.Module):
    def __init__(self, classes: int = 3, bias: bool = True) -> None:
        super().__init__()
        self.body, self.drop, self.head = nn.Linear(4, 5), nn.Dropout(0.5), nn.Linear(5, classes, bias=bias)
        self.runs = 0

    def forward(self, x: Tensor) -> Tensor:
        self.runs += 1
        logits: Tensor = self.head(self.drop(self.body(x).tanh()))
        return logits

    def features(self, x: Tensor) -> Tensor:
        hidden = self.body(x).tanh().detach()
        return hidden if self.head.bias is None else torch.cat([hidden, hidden.new_ones(len(x), 1)], 1)


def data(n: int = 40, classes: int = 3, dtype: torch.dtype = WIDE) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 4, dtype=dtype), torch.randint(classes, (n,))


def fitted(net: nn.Module | None = None, xy: Any = None, prior_precision: Any = 0.7, **settings: Any) -> cb.LastLayerLaplace:
    return cb.LastLayerLaplace.from_point(net or Net().to(WIDE), data() if xy is None else xy, prior_precision, **settings)


def precision(posterior: cb.LastLayerLaplace) -> Tensor:
    """The posterior's precision over the layer's flat weights, from its eigenbasis, one unit vector after the other."""
    group = posterior.group
    shape = group.curvature.eigenvalues.shape
    units = torch.eye(shape.numel(), dtype=WIDE).view(-1, *shape)
    basis = torch.stack([group._flat(column) for column in group.curvature.from_basis(units)], 1)
    torch.testing.assert_close(basis @ basis.T, torch.eye(len(basis), dtype=WIDE))
    matrix: Tensor = (basis / group.variances().flatten()) @ basis.T
    return matrix


def covariance(posterior: cb.LastLayerLaplace) -> Tensor:
    return precision(posterior).inverse()
