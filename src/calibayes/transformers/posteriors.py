"""Which posterior a `CalibayesTrainer` trains, and with which settings."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from torch import nn

from calibayes.checks import positive
from calibayes.errors import InvalidArgumentError
from calibayes.posterior import MeanField, Point
from calibayes.posterior.base import Posterior
from calibayes.posterior.mean_field import PriorMean
from calibayes.posterior.selection import Where

__all__ = ["Recipe"]


@dataclass(frozen=True)
class Recipe:
    """How a posterior is made of a network, or one that is there already; the settings are those of `MeanField`."""

    kind: Literal["point", "mean-field"] | Posterior
    where: Where = None
    prior_std: float | Mapping[str, float] | None = None
    init_std: float | Mapping[str, float] | None = None
    prior_mean: PriorMean = "initial"

    def __post_init__(self) -> None:
        if not isinstance(self.kind, Posterior) and self.kind not in ("point", "mean-field"):
            raise InvalidArgumentError(
                f"Expected `posterior` to be 'point', 'mean-field', a Point or a MeanField, but got {self.kind!r}."
            )
        for name, value in self._given().items():
            self._check_used(name, value)

    @property
    def ready(self) -> Posterior | None:
        """The posterior that is there already."""
        return self.kind if isinstance(self.kind, Posterior) else None

    def rho_rate(self, rate: float | None, optimizer: Any) -> float | None:
        r"""The learning rate of $\rho$, if one is given: refused where there is no $\rho$, and beside a ready optimiser."""
        if rate is None:
            return None
        if self.ready is None or not self.ready.num_bayesian:
            self._check_used("rho_learning_rate", rate)
        if optimizer is not None:
            raise InvalidArgumentError(
                f"An optimiser that is given has its learning rates, but `rho_learning_rate` is {rate!r}. Leave it out, and "
                "give the groups of `posterior.parameter_groups()` whose names end in '.rho' their own `lr`."
            )
        return positive("rho_learning_rate", rate)

    def __call__(self, network: nn.Module) -> Posterior:
        """The posterior over this network's weights."""
        if isinstance(network, Posterior):
            raise InvalidArgumentError(
                f"Expected `model` to be a network, but got a {type(network).__name__}. Pass it as `posterior`."
            )
        if self.kind == "point":
            return Point(network)
        return MeanField(network, **{"prior_mean": "initial", **self._given()})

    def _given(self) -> dict[str, Any]:
        """The settings that are not left out."""
        found = {each.name: (getattr(self, each.name), each.default) for each in fields(self) if each.name != "kind"}
        return {name: value for name, (value, default) in found.items() if value != default}

    def _check_used(self, name: str, value: Any) -> None:
        shown = f"`{name}` is {reprlib.repr(value)}"
        if self.kind == "point" or (self.ready is not None and not self.ready.num_bayesian):
            raise InvalidArgumentError(
                f"No weight of a point is Bayesian, but {shown}. Use posterior='mean-field', or leave it out."
            )
        if self.ready is not None:
            raise InvalidArgumentError(f"A posterior that is given has its settings, but {shown}. Leave it out.")
