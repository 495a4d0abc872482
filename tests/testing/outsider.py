"""A posterior of somebody else, written with public names alone: double exponential rather than Gaussian."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

import calibayes as cb


class LaplaceGroup(cb.Group):
    r"""Independent $q(\theta) = \mathrm{Laplace}(\mu, b)$ with $b = e^\rho$, and prior $\mathrm{Laplace}(0, s)$."""

    def __init__(self, name: str, layout: cb.posterior.Layout, values: Tensor, scale: float, prior_scale: float) -> None:
        super().__init__(name, layout)
        self.mu = nn.Parameter(values)
        self.rho = nn.Parameter(torch.full_like(values, math.log(scale)))
        self.prior_scale = prior_scale

    def mean(self) -> Tensor:
        return self.mu

    def draw(self, generator: torch.Generator | None) -> Tensor:
        uniform = torch.empty_like(self.mu).uniform_(-0.5, 0.5, generator=generator)
        return self.mu - self.rho.exp() * uniform.sign() * torch.log1p(-2 * uniform.abs())

    def kl(self) -> Tensor:
        b, s, far = self.rho.exp(), self.prior_scale, self.mu.abs()
        return (math.log(s) - self.rho + far / s + b / s * torch.exp(-far / b) - 1).sum()

    # Optional: what is stated here is checked.

    def std(self) -> Tensor:
        return math.sqrt(2) * self.rho.exp()

    def log_prob(self, vector: Tensor) -> Tensor:
        return _log_density(vector - self.mu, self.rho.exp())

    def prior_log_prob(self, vector: Tensor) -> Tensor:
        return _log_density(vector, torch.full_like(vector, self.prior_scale))

    def prior(self) -> dict[str, Any]:
        return {"prior_scale": self.prior_scale}


def _log_density(offset: Tensor, scale: Tensor) -> Tensor:
    return -(offset.abs() / scale + torch.log(2 * scale)).sum()


class DoubleExponential(cb.NetworkPosterior):
    """A double exponential distribution over a network's weights."""

    kind = "example.double-exponential"

    def __init__(self, net: nn.Module, where: Any = None, scale: float = 0.01, prior_scale: float = 0.05) -> None:
        def group(name: str, layout: cb.posterior.Layout, values: Tensor) -> LaplaceGroup:
            return LaplaceGroup(name, layout, values, scale, prior_scale)

        super().__init__(*cb.posterior.assemble(net, group, where))
        self.scale, self.prior_scale = scale, prior_scale

    def settings(self) -> dict[str, Any]:
        return {"scale": self.scale, "prior_scale": self.prior_scale}
