"""Which posterior a `CalibayesTrainer` makes of a network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import nn

from calibayes.errors import InvalidArgumentError
from calibayes.posterior import MeanField, Point
from calibayes.posterior.base import Posterior
from calibayes.posterior.mean_field import PriorMean
from calibayes.posterior.selection import Where

__all__ = ["Recipe"]


@dataclass(frozen=True)
class Recipe:
    """How a posterior is made of a network; the settings are those of `MeanField`."""

    kind: Literal["point", "mean-field"]
    where: Where
    prior_std: float | Mapping[str, float]
    init_std: float | Mapping[str, float]
    prior_mean: PriorMean

    def __post_init__(self) -> None:
        if self.kind not in ("point", "mean-field"):
            raise InvalidArgumentError(
                f"Expected `posterior` to be 'point', 'mean-field', a Point or a MeanField, but got {self.kind!r}."
            )
        if self.kind == "point" and self.where is not None:
            raise InvalidArgumentError(
                f"No weight of a point is Bayesian, but `where` is {self.where!r}. Use posterior='mean-field'."
            )

    def __call__(self, network: nn.Module) -> Posterior:
        """The posterior over this network's weights."""
        if isinstance(network, Posterior):
            raise InvalidArgumentError(
                f"Expected `model` to be a network, but got a {type(network).__name__}. Pass it as `posterior`."
            )
        if self.kind == "point":
            return Point(network)
        return MeanField(network, self.prior_std, self.init_std, self.where, self.prior_mean)
