"""A small network with Gaussians over its weights, for natural gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.posterior import Posterior

N, BATCH, SEED = 60, 30, 5
PRIORS = {"0.*": 0.5, "2.*": 0.3}


def mlp() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)).double()


def data(n: int = N) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(n, 6, dtype=torch.float64, generator=generator)
    return x, (x[:, :4] + 0.7 * torch.randn(n, 4, dtype=torch.float64, generator=generator)).argmax(-1)


def prior_mean() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    shapes = {"0.weight": (8, 6), "2.weight": (4, 8)}
    return {name: 0.1 * torch.randn(shape, dtype=torch.float64, generator=generator) for name, shape in shapes.items()}


def posterior_of(net: nn.Module, **settings: Any) -> cb.MeanField:
    """Two pairs with priors of their own, and the biases as points."""
    return cb.MeanField(
        net, **{"prior_std": PRIORS, "init_std": 0.1, "where": "*weight", "prior_mean": prior_mean(), **settings}
    )


def flat(posterior: Posterior) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in posterior.parameters()])
