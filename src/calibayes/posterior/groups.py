r"""The two kinds of flat vector that a posterior is made of: weights known up to a Gaussian, and weights known as points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from calibayes.posterior.flat import Layout

__all__ = ["GaussianGroup", "GaussianPair", "PointGroup"]


class GaussianPair(NamedTuple):
    r"""The parameters $\mu$ and $\rho = \log\sigma$ of a Gaussian over weights, and its prior $N(m, s^2 I)$.

    Attributes:
        mu: $\mu$.
        rho: $\rho$.
        prior_std: $s$.
        prior_mean: $m$, or ``None`` for zero.
    """

    mu: nn.Parameter
    rho: nn.Parameter
    prior_std: float
    prior_mean: Tensor | None


class PointGroup(nn.Module):
    """A flat vector of weights without a distribution."""

    def __init__(self, name: str, layout: Layout, values: Tensor) -> None:
        super().__init__()
        self.name = name
        self.layout = layout
        self.theta = nn.Parameter(values)

    def mean(self) -> Tensor:
        """The weights."""
        return self.theta

    def gaussian(self) -> GaussianPair | None:
        """``None``: these weights have no distribution."""
        return None

    def pull_back(self, gradient: Tensor) -> None:
        """Add the loss's gradient with respect to the weights, of one sample ``[N]`` or several ``[C, N]``."""
        _accumulate(self.theta, gradient if gradient.dim() == 1 else gradient.sum(0))

    def extra_repr(self) -> str:
        """The vector's name and length."""
        return f"{self.name!r}, weights={self.theta.numel():,}"


class GaussianGroup(nn.Module):
    r"""A flat pair $\varphi = [\mu, \rho]$: $q(\theta) = N(\mu, \mathrm{diag}\, e^{2\rho})$ with prior $N(m, s^2 I)$.

    ``scale`` is $\sigma = e^\rho$; it is taken once and handed to every draw and to the KL of one step. ``init_std`` is
    the initial $\sigma$ of each weight tensor in the layout.
    """

    prior_mean: Tensor | None

    def __init__(self, name: str, layout: Layout, values: Tensor, *, init_std: Sequence[float], prior_std: float) -> None:
        super().__init__()
        self.name = name
        self.layout = layout
        self.prior_std = prior_std
        self.mu = nn.Parameter(values)
        widths = [values.new_full((size,), math.log(std)) for size, std in zip(layout.sizes, init_std, strict=True)]
        self.rho = nn.Parameter(torch.cat(widths))
        self.register_buffer("prior_mean", None)

    def centre_prior(self, values: Tensor) -> None:
        """Put the prior's mean at ``values`` instead of zero."""
        self.prior_mean = values.to(self.mu)

    def mean(self) -> Tensor:
        r"""$\mu$."""
        return self.mu

    def gaussian(self) -> GaussianPair | None:
        """The pair and its prior, for optimisers that know what they are."""
        return GaussianPair(self.mu, self.rho, self.prior_std, self.prior_mean)

    def scale(self) -> Tensor:
        r"""$\sigma = e^\rho$, outside the graph."""
        return self.rho.detach().exp()

    def draw(self, generator: torch.Generator | None, scale: Tensor) -> Tensor:
        r"""One sample $\theta = \mu + \sigma \circ \epsilon$, differentiable in $\mu$ and $\rho$."""
        shift = torch.randn(self.mu.shape, generator=generator, dtype=self.mu.dtype, device=self.mu.device).mul_(scale)
        if not torch.is_grad_enabled():
            return shift.add_(self.mu)
        theta: Tensor = _Reparameterised.apply(self.mu, self.rho, shift)  # type: ignore[no-untyped-call]
        return theta

    def noise(self, generators: Sequence[torch.Generator]) -> Tensor:
        r"""$\epsilon$, each from its own generator: ``[N]`` for one, ``[C, N]`` for several."""
        shape = self.mu.shape if len(generators) == 1 else (len(generators), *self.mu.shape)
        noise = torch.empty(shape, dtype=self.mu.dtype, device=self.mu.device)
        for row, generator in zip(noise.view(len(generators), -1), generators, strict=True):
            row.normal_(generator=generator)
        return noise

    def pull_back(self, gradient: Tensor, shift: Tensor) -> None:
        r"""The chain rule $(\nabla_\varphi\theta)\nabla_\theta$: from the samples' gradients to those of $\mu$ and $\rho$.

        Args:
            gradient: the loss's gradient with respect to $\theta$, ``[N]`` or ``[C, N]``; it is used up.
            shift: $\sigma \circ \epsilon$ of the same samples; it is used up.
        """
        widths = shift.mul_(gradient)
        _accumulate(self.mu, gradient if gradient.dim() == 1 else gradient.sum(0))
        _accumulate(self.rho, widths if widths.dim() == 1 else widths.sum(0))

    def pull_back_kl(self, scale: Tensor, weight: float) -> None:
        r"""Add the gradient of ``weight`` times the KL."""
        precision = weight * self.prior_std**-2
        offset = self.mu.detach() if self.prior_mean is None else self.mu.detach() - self.prior_mean
        if self.mu.grad is None:
            self.mu.grad = torch.zeros_like(self.mu)
        if self.rho.grad is None:
            self.rho.grad = torch.zeros_like(self.rho)
        self.mu.grad.add_(offset, alpha=precision)
        self.rho.grad.addcmul_(scale, scale, value=precision).sub_(weight)

    def kl(self, scale: Tensor) -> Tensor:
        r"""$\mathrm{KL}(q \| p) = \sum \log(s/\sigma) + (\sigma^2 + (\mu - m)^2)/(2s^2) - \tfrac12$, exactly."""
        value: Tensor = _GaussianKL.apply(self.mu, self.rho, scale, self.prior_mean, self.prior_std)  # type: ignore[no-untyped-call]
        return value

    def kl_value(self, scale: Tensor) -> Tensor:
        """The same, outside the graph."""
        offset = self.mu.detach() if self.prior_mean is None else self.mu.detach() - self.prior_mean
        return _gaussian_kl(offset, self.rho.detach(), scale, self.prior_std)

    def extra_repr(self) -> str:
        """The pair's name, length and prior."""
        return f"{self.name!r}, weights={self.mu.numel():,}, prior_std={self.prior_std:g}"


def _accumulate(parameter: nn.Parameter, gradient: Tensor) -> None:
    if parameter.grad is None:
        parameter.grad = gradient
    else:
        parameter.grad.add_(gradient)


class _Reparameterised(torch.autograd.Function):
    """θ = μ + σε given the product σε: the gradient of μ passes through, that of ρ is multiplied by the product."""

    @staticmethod
    def forward(ctx: Any, mu: Tensor, rho: Tensor, shift: Tensor) -> Tensor:
        ctx.save_for_backward(shift)
        return mu + shift

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (shift,) = ctx.saved_tensors
        return grad, grad * shift, None


def _gaussian_kl(offset: Tensor, rho: Tensor, scale: Tensor, prior_std: float) -> Tensor:
    spread = torch.dot(scale, scale) + torch.dot(offset, offset)
    value: Tensor = spread * (0.5 * prior_std**-2) - rho.sum() + offset.numel() * (math.log(prior_std) - 0.5)
    return value


class _GaussianKL(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, mu: Tensor, rho: Tensor, scale: Tensor, prior_mean: Tensor | None, prior_std: float) -> Tensor:
        offset = mu if prior_mean is None else mu - prior_mean
        ctx.save_for_backward(offset, scale)
        ctx.precision = prior_std**-2
        return _gaussian_kl(offset, rho, scale, prior_std)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        offset, scale = ctx.saved_tensors
        weight = grad * ctx.precision
        return offset * weight, (scale * scale).mul_(weight).sub_(grad), None, None, None
