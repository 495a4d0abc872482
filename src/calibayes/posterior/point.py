"""One value per weight: the frequentist posterior, and the group of weights without a distribution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from calibayes.posterior.flat import Layout, Skeleton
from calibayes.posterior.group import Group, accumulate
from calibayes.posterior.network_posterior import NetworkPosterior
from calibayes.posterior.rebuilding import network_with_roles
from calibayes.posterior.selection import Choice, choose, grouped

__all__ = ["Point", "PointGroup", "point_groups"]


@final
class PointGroup(Group):
    """A flat vector of weights without a distribution."""

    bayesian: ClassVar[bool] = False

    def __init__(self, name: str, layout: Layout, values: Tensor) -> None:
        super().__init__(name, layout)
        self.theta = nn.Parameter(values)

    def mean(self) -> Tensor:
        """The weights."""
        return self.theta

    def leaves(self, generators: Sequence[torch.Generator]) -> tuple[Tensor, None]:
        """The weights themselves, once for each sample."""
        vector = self.theta.detach()
        return (vector if len(generators) == 1 else vector.expand(len(generators), -1)).detach().requires_grad_(), None

    def pull_back(self, gradient: Tensor, kept: None) -> None:
        """Add the loss's gradient with respect to the weights, of one sample ``[N]`` or several ``[C, N]``."""
        accumulate(self.theta, gradient if gradient.dim() == 1 else gradient.sum(0))


def point_groups(choices: Iterable[Choice], skeleton: Skeleton) -> list[Group]:
    """Groups for the weights that are trained without a distribution."""
    trained = [choice for choice in choices if choice.role == "point"]
    return [PointGroup(name, layout, layout.flatten(values)) for name, layout, values in grouped(trained, skeleton)]


@final
class Point(NetworkPosterior):
    """A network with one value per weight: the frequentist twin of `MeanField` (FNN, CA-FNN).

    Args:
        net: any ``nn.Module`` that returns logits; it is copied.

    Examples:
        >>> posterior = Point(torch.nn.Linear(3, 2))
        >>> posterior.num_bayesian, float(posterior.kl())
        (0, 0.0)
    """

    kind: ClassVar[str] = "point"

    def __init__(self, net: nn.Module) -> None:
        skeleton = Skeleton(net)
        choices = choose(skeleton, None, bayesian=False)
        super().__init__(skeleton, choices, point_groups(choices, skeleton))

    @classmethod
    def from_config(cls, net: nn.Module, config: Mapping[str, Any]) -> Point:
        """Rebuild what `config` described; the weights do not matter yet."""
        return cls(network_with_roles(net, config))
