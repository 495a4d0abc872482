"""SWAG and Laplace: Gaussians from the path of a plain network's training, or the curvature at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calibayes.errors import InvalidArgumentError
from calibayes.methods.method_settings import MethodSettings
from calibayes.methods.registry import Method, Network, Plan, one_network
from calibayes.posterior import SWAG, LastLayerLaplace

__all__ = ["LAPLACE", "SWAG_METHOD", "LaplaceSettings", "SWAGSettings"]


@dataclass(frozen=True, kw_only=True)
class SWAGSettings(MethodSettings):
    """The settings of SWAG, as in `calibayes.SWAG`."""

    start_epoch: float = 0.5
    every: Literal["epoch", "step"] | int = "epoch"
    rank: int = 20
    scale: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ema is not None:
            raise InvalidArgumentError(f"SWAG averages the weights itself, but `ema` is {self.ema!r}. Leave it out.")


@dataclass(frozen=True, kw_only=True)
class LaplaceSettings(MethodSettings):
    """The settings of a Laplace approximation of the last layer, as in `calibayes.LastLayerLaplace`."""

    prior_precision: float | Literal["marginal-likelihood"] = "marginal-likelihood"


def _swag(net: Network, settings: SWAGSettings) -> Plan:
    posterior = SWAG(one_network(net), settings.start_epoch, settings.every, settings.rank, settings.scale)
    return Plan(posterior, settings.objective(), settings.fit())


def _laplace(net: Network, settings: LaplaceSettings) -> Plan:
    posterior = LastLayerLaplace(one_network(net), prior_precision=settings.prior_precision)
    return Plan(posterior, settings.objective(), settings.fit())


SWAG_METHOD = Method("swag", "SWAG", "A Gaussian fitted to the path of the weights late in training.", SWAGSettings, _swag)
LAPLACE = Method(
    "laplace", "last-layer Laplace", "A Gaussian over the last layer, fitted after training.", LaplaceSettings, _laplace
)
