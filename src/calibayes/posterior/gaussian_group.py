r"""Independent Gaussians over a flat vector of weights: the group of `calibayes.MeanField`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from calibayes.posterior.flat import Layout
from calibayes.posterior.group import GaussianPair, Group, accumulate

__all__ = ["GaussianGroup"]


@final
class GaussianGroup(Group):
    r"""A flat pair $\varphi = [\mu, \rho]$: $q(\theta) = N(\mu, \mathrm{diag}\, e^{2\rho})$ with prior $N(m, s^2 I)$.

    $\sigma = e^\rho$ is taken once for all draws and the KL of a step. ``init_std`` is the initial $\sigma$ of each weight
    tensor in the layout. For the first ``epochs_before`` epochs of training (a number, or a share of all) the weights are drawn
    at their mean and there is no KL: that is the training of a `Point`.
    """

    prior_mean: Tensor | None
    epochs_left: Tensor | None

    def __init__(
        self, name: str, layout: Layout, values: Tensor, init_std: Sequence[float], prior_std: float, epochs_before: float
    ) -> None:
        super().__init__(name, layout)
        self.prior_std = prior_std
        self.mu = nn.Parameter(values)
        widths = [values.new_full((size,), math.log(std)) for size, std in zip(layout.sizes, init_std, strict=True)]
        self.rho = nn.Parameter(torch.cat(widths))
        self.register_buffer("prior_mean", None)
        self.epochs_before = epochs_before
        # Without a point phase there is nothing to store; -1 stands for one that has not begun.
        self.register_buffer("epochs_left", torch.tensor(-1) if epochs_before else None)
        self._scale: Tensor | None = None

    def mean(self) -> Tensor:
        return self.mu

    def scale(self) -> Tensor:
        r"""$\sigma = e^\rho$, outside the graph."""
        return self.rho.detach().exp() if self._scale is None else self._scale

    def draw(self, generator: torch.Generator | None) -> Tensor:
        r"""One sample $\theta = \mu + \sigma \circ \epsilon$, differentiable in $\mu$ and $\rho$."""
        if self._still_a_point():
            return self.mu
        shift = self._shift([generator])
        if not torch.is_grad_enabled():
            return shift.add_(self.mu)
        theta: Tensor = _Reparameterised.apply(self.mu, self.rho, shift)  # type: ignore[no-untyped-call]
        return theta

    def kl(self) -> Tensor | None:
        r"""$\mathrm{KL}(q \| p) = \sum \log(s/\sigma) + (\sigma^2 + (\mu - m)^2)/(2s^2) - \tfrac12$, exactly."""
        if self._still_a_point():
            return self.mu.new_zeros(())
        value: Tensor = _GaussianKL.apply(self.mu, self.rho, self.scale(), self.prior_mean, self.prior_std)  # type: ignore[no-untyped-call]
        return value

    def std(self) -> Tensor:
        return self.rho.exp()

    def gaussian(self) -> GaussianPair:
        return GaussianPair(self.mu, self.rho, self.prior_std, self.prior_mean)

    def prior(self) -> dict[str, Any]:
        return {"prior_std": self.prior_std, "prior_mean": "zero" if self.prior_mean is None else "stored"}

    def optimizer_groups(self) -> list[dict[str, Any]]:
        r"""$\mu$ and $\rho$, the latter without weight decay, which would pull every standard deviation towards one."""
        return [
            {"params": [self.mu], "name": f"{self.name}.mu"},
            {"params": [self.rho], "name": f"{self.name}.rho", "weight_decay": 0.0},
        ]

    def settled(self) -> bool:
        return not self._still_a_point()

    def keep(self) -> None:
        self._scale = self.rho.detach().exp()

    def release(self) -> None:
        self._scale = None

    def leaves(self, generators: Sequence[torch.Generator]) -> tuple[Tensor, Tensor | None]:
        r"""Samples $\theta = \mu + \sigma \circ \epsilon$ outside the graph, and $\sigma \circ \epsilon$."""
        mu = self.mu.detach()
        if self._still_a_point():
            return (mu if len(generators) == 1 else mu.expand(len(generators), -1)).detach().requires_grad_(), None
        shift = self._shift(generators)
        return (mu + shift).requires_grad_(), shift

    def pull_back(self, gradient: Tensor, kept: Tensor | None) -> None:
        r"""The chain rule $(\nabla_\varphi\theta)\nabla_\theta$: from the samples' gradients to those of $\mu$ and $\rho$.

        Both arguments, the loss's gradient in $\theta$ (``[N]`` or ``[C, N]``) and $\sigma \circ \epsilon$, are used up.
        """
        widths = None if kept is None else kept.mul_(gradient)
        accumulate(self.mu, gradient if gradient.dim() == 1 else gradient.sum(0))
        if widths is not None:
            accumulate(self.rho, widths if widths.dim() == 1 else widths.sum(0))

    def kl_value(self) -> Tensor:
        if self._still_a_point():
            return self.mu.new_zeros(())
        return _gaussian_kl(self._offset(), self.rho.detach(), self.scale(), self.prior_std)

    def pull_back_kl(self, weight: float) -> None:
        if self._still_a_point():
            return
        precision, scale = weight * self.prior_std**-2, self.scale()
        if self.mu.grad is None:
            self.mu.grad = torch.zeros_like(self.mu)
        if self.rho.grad is None:
            self.rho.grad = torch.zeros_like(self.rho)
        self.mu.grad.add_(self._offset(), alpha=precision)
        self.rho.grad.addcmul_(scale, scale, value=precision).sub_(weight)

    def begin(self, epochs: int) -> None:
        if self.epochs_left is not None and int(self.epochs_left) < 0:
            before = self.epochs_before
            self.epochs_left.fill_(min(round(before * epochs), epochs - 1) if isinstance(before, float) else before)

    def after_epoch(self) -> None:
        if self.epochs_left is not None and int(self.epochs_left) > 0:
            self.epochs_left.sub_(1)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, prior_std={self.prior_std:g}"

    def _still_a_point(self) -> bool:
        return self.epochs_left is not None and int(self.epochs_left) > 0

    def _offset(self) -> Tensor:
        return self.mu.detach() if self.prior_mean is None else self.mu.detach() - self.prior_mean

    def _shift(self, generators: Sequence[torch.Generator | None]) -> Tensor:
        r"""$\sigma \circ \epsilon$, each $\epsilon$ from its own generator: ``[N]`` for one, ``[C, N]`` for several."""
        shape = self.mu.shape if len(generators) == 1 else (len(generators), *self.mu.shape)
        noise = torch.empty(shape, dtype=self.mu.dtype, device=self.mu.device)
        for row, generator in zip(noise.view(len(generators), -1), generators, strict=True):
            row.normal_(generator=generator)
        return noise.mul_(self.scale())


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
