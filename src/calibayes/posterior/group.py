"""The base of all groups: a flat vector of a network's weights, and what is known about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from calibayes.posterior.flat import Layout

__all__ = ["GaussianPair", "Group", "accumulate"]


class GaussianPair(NamedTuple):
    r"""Parameters of independent Gaussians, $N(\mu, e^{2\rho})$, and their prior $N(m, s^2)$; no ``prior_mean`` is zero."""

    mu: nn.Parameter
    rho: nn.Parameter
    prior_std: float
    prior_mean: Tensor | None


class Group(nn.Module, ABC):
    """A flat vector of weights and what is known about it; one subclass, in one file, for each kind of knowledge.

    A subclass registers its parameters and buffers and implements `mean`. Everything else has a default: a group that only
    overrides `draw` is trained by automatic differentiation through it. A closed form of the chain rule, where that pays, is
    `leaves` and `pull_back`.

    Args:
        name: the pattern or purpose that these weights share; names of parameter groups begin with it.
        layout: where each weight lies in the vector.
    """

    bayesian: ClassVar[bool] = True
    """True if the weights have a distribution."""

    random_in_training: ClassVar[bool] = True
    """True if draws differ in training mode."""

    def __init__(self, name: str, layout: Layout) -> None:
        super().__init__()
        self.name = name
        self.layout = layout

    @property
    def size(self) -> int:
        """The number of weights; tied weights count once."""
        return sum(self.layout.sizes)

    # --- the distribution ---

    @abstractmethod
    def mean(self) -> Tensor:
        """The mean weights ``[N]``, differentiable in the group's parameters."""

    def draw(self, generator: torch.Generator | None) -> Tensor:
        """One sample of the weights ``[N]``, differentiable in the group's parameters; all noise is the generator's."""
        return self.mean()

    def kl(self) -> Tensor | None:
        r"""$\mathrm{KL}(q \| p)$ in nats, differentiable; ``None`` for a group that has none."""
        return None

    def std(self) -> Tensor | None:
        """The standard deviation of each weight ``[N]`` over draws; ``None`` where no closed form is at hand."""
        return None

    def log_prob(self, vector: Tensor) -> Tensor | None:
        r"""$\log q(\theta)$ of one draw, for `calibayes.testing` to check `kl` with; ``None`` where it is not at hand."""
        return None

    def prior_log_prob(self, vector: Tensor) -> Tensor | None:
        r"""$\log p(\theta)$ of one draw, likewise."""
        return None

    def gaussian(self) -> GaussianPair | None:
        r"""The pair $(\mu, \rho)$ of a mean-field Gaussian, for optimisers that know what to do with it."""
        return None

    def prior(self) -> dict[str, Any] | None:
        """The prior in plain values: what a checkpoint must have in common with the posterior that it is loaded into."""
        return None

    # --- training ---

    def settled(self) -> bool:
        """Return False while training is still preparing for the distribution, so that its scores say little."""
        return True

    def optimizer_groups(self) -> list[dict[str, Any]]:
        """Parameter groups for an optimiser, each with its own name."""
        return [{"params": [value], "name": f"{self.name}.{name}"} for name, value in self.named_parameters()]

    def keep(self) -> None:
        """Keep what draws have in common, until `release`: the parameters do not change in the meantime."""

    def release(self) -> None:
        """Forget what `keep` kept."""

    def leaves(self, generators: Sequence[torch.Generator]) -> tuple[Tensor, Any]:
        """Samples to differentiate a loss in, ``[N]`` for one generator, ``[C, N]`` for several; and what `pull_back` needs."""
        with torch.enable_grad():
            drawn = [self.draw(generator) for generator in generators]
            vectors = drawn[0] if len(drawn) == 1 else torch.stack(drawn)
        return vectors.detach().requires_grad_(), vectors

    def pull_back(self, gradient: Tensor, kept: Any) -> None:
        """Add the gradient of a loss with respect to what `leaves` gave to that of the group's parameters."""
        if kept.requires_grad:
            torch.autograd.backward(kept, gradient)

    def kl_value(self) -> Tensor | None:
        """The value of `kl`, outside the graph."""
        with torch.no_grad():
            return self.kl()

    def pull_back_kl(self, weight: float) -> None:
        """Add the gradient of ``weight`` times the KL to that of the group's parameters."""
        with torch.enable_grad():
            value = self.kl()
            if value is not None and value.requires_grad:
                torch.autograd.backward(value * weight)

    def begin(self, epochs: int) -> None:
        """Called before a training of ``epochs`` epochs."""

    def after_step(self) -> None:
        """Called after every optimiser step."""

    def after_epoch(self) -> None:
        """Called after every epoch."""

    def extra_repr(self) -> str:
        """The group's name and length."""
        return f"{self.name!r}, weights={self.size:,}"


def accumulate(parameter: nn.Parameter, gradient: Tensor) -> None:
    """Add to a parameter's gradient; the first one is taken as it is."""
    if parameter.grad is None:
        parameter.grad = gradient
    else:
        parameter.grad.add_(gradient)
