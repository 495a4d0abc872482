"""Groups that are trained as points: a flat vector of weights, and the gradient that it is given."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from calibayes.posterior.flat import Layout
from calibayes.posterior.group import Group, accumulate

__all__ = ["PointGroup", "TrainedAsPoint"]


class TrainedAsPoint(Group, ABC):
    """A flat vector ``theta`` that is trained without noise, whatever is made of it afterwards."""

    random_in_training: ClassVar[bool] = False

    def __init__(self, name: str, layout: Layout, values: Tensor) -> None:
        super().__init__(name, layout)
        self.theta = nn.Parameter(values)

    def leaves(self, generators: Sequence[torch.Generator]) -> tuple[Tensor, None]:
        """The weights themselves, once for each sample."""
        vector = self.theta.detach()
        return (vector if len(generators) == 1 else vector.expand(len(generators), -1)).detach().requires_grad_(), None

    def pull_back(self, gradient: Tensor, kept: None) -> None:
        """Add the loss's gradient with respect to the weights, of one sample ``[N]`` or several ``[C, N]``."""
        accumulate(self.theta, gradient if gradient.dim() == 1 else gradient.sum(0))


@final
class PointGroup(TrainedAsPoint):
    """A flat vector of weights without a distribution."""

    bayesian: ClassVar[bool] = False

    def mean(self) -> Tensor:
        return self.theta
