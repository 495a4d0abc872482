"""One weight vector: the frequentist posterior."""

from __future__ import annotations

from typing import Final, Literal, final

from torch import nn

from calibayes.posterior.base import Posterior
from calibayes.posterior.flat import Skeleton
from calibayes.posterior.groups import PointGroup
from calibayes.posterior.selection import choose, grouped

__all__ = ["Point"]


@final
class Point(Posterior):
    """A network with one value per weight: the frequentist twin of `MeanField` (FNN, CA-FNN).

    Args:
        net: any ``nn.Module`` that returns logits; it is copied.

    Examples:
        >>> posterior = Point(torch.nn.Linear(3, 2))
        >>> posterior.num_bayesian, float(posterior.kl())
        (0, 0.0)
    """

    kind: Final[Literal["point"]] = "point"  # type: ignore[misc]

    def __init__(self, net: nn.Module) -> None:
        skeleton = Skeleton(net)
        choices = choose(skeleton, None, bayesian=False)
        trained = [choice for choice in choices if choice.role == "point"]
        groups = [PointGroup(name, lay, lay.flatten(v)) for name, lay, v in grouped(trained, skeleton)]
        super().__init__(skeleton, choices, groups)
