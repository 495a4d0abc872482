r"""A Gaussian over the weights of one linear layer: the group of `calibayes.LastLayerLaplace`."""

from __future__ import annotations

from typing import ClassVar, final

import torch
from torch import Tensor, nn

from calibayes.posterior.flat import Layout
from calibayes.posterior.group import Group
from calibayes.posterior.laplace_curvature import Curvature

__all__ = ["LaplaceGroup"]


@final
class LaplaceGroup(Group):
    r"""$q(\theta) = N(\mu, (H + \delta I)^{-1})$ with prior $N(0, \delta^{-1} I)$, for $\theta = [W, b]$ of a linear layer.

    In training mode, and until it is fitted (until ``curvature``, $H$, is filled in), it is a point, $\mu$, without a KL.
    """

    random_in_training: ClassVar[bool] = False

    def __init__(self, name: str, layout: Layout, values: Tensor, curvature: Curvature) -> None:
        super().__init__(name, layout)
        self.mu = nn.Parameter(values)
        self.curvature = curvature
        self.prior_precision = 1.0
        self.log_likelihood = 0.0
        self.fitted = False

    def mean(self) -> Tensor:
        return self.mu

    def matrix(self) -> Tensor:
        r"""$\mu$ as a matrix ``[K, D]``, the bias in its last column, outside the graph."""
        parts = list(self.layout.views(self.mu.detach()).values())
        return torch.cat([parts[0], *(part.unsqueeze(1) for part in parts[1:])], 1).to(self.curvature.eigenvalues.dtype)

    def variances(self) -> Tensor:
        """The variances of the weights' coordinates in the eigenbasis, ``[K, D]``."""
        return 1 / (self.curvature.eigenvalues + self.prior_precision)

    def draw(self, generator: torch.Generator | None) -> Tensor:
        if self.training or not self.fitted:
            return self.mu
        variances = self.variances()
        noise = torch.empty_like(variances).normal_(generator=generator)
        return self.mu + self._flat(self.curvature.scaled(noise, variances.sqrt())).to(self.mu.dtype)

    def kl(self) -> Tensor:
        r"""$\frac12 \sum_i [\log(1+l_i/\delta) - l_i/(l_i + \delta)] + \frac\delta2 \|\mu\|^2$ with $H$'s eigenvalues $l_i$."""
        if self.training or not self.fitted:
            return self.mu.new_zeros(())
        values = self.curvature.eigenvalues
        spread = torch.log1p(values / self.prior_precision) - values / (values + self.prior_precision)
        return 0.5 * (spread.sum() + self.prior_precision * self.mu.to(values.dtype).square().sum())

    def get_extra_state(self) -> Tensor:
        # In float64, so that the precision and the likelihood keep all their digits.
        return torch.tensor([self.prior_precision, self.log_likelihood, float(self.fitted)], dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        self.prior_precision, self.log_likelihood, self.fitted = float(state[0]), float(state[1]), bool(state[2])

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, prior_precision={self.prior_precision:g}"

    def _flat(self, matrix: Tensor) -> Tensor:
        if len(self.layout.shapes) == 1:
            return matrix.flatten()
        return torch.cat([matrix[:, :-1].flatten(), matrix[:, -1]])
