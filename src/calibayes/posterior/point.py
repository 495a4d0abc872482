"""One value per weight: the frequentist posterior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, final

from torch import nn

from calibayes.posterior.network_posterior import NetworkPosterior
from calibayes.posterior.rebuilding import network_with_roles
from calibayes.posterior.weight_groups import assemble

__all__ = ["Point"]


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
        super().__init__(*assemble(net, None))

    @classmethod
    def from_config(cls, net: nn.Module, config: Mapping[str, Any]) -> Point:
        return cls(network_with_roles(net, config))
