"""Ensembles: several networks, each trained on its own, that vote."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from calibayes.checks import positive_integer
from calibayes.methods.mean_fields import WarmMeanField
from calibayes.methods.member_networks import member_network
from calibayes.methods.method_settings import MethodSettings
from calibayes.methods.registry import Method, Network, Plan
from calibayes.posterior import Ensemble, MCDropout, Point
from calibayes.posterior.ensemble import member_seed
from calibayes.randomness import seeded

__all__ = ["ENSEMBLE", "MIXTURE", "Mixture", "PointEnsemble"]


@dataclass(frozen=True, kw_only=True)
class _EnsembleSettings(MethodSettings):
    members: int = 4
    member_seed: int = 0
    reinitialize: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_integer("members", self.members)


@dataclass(frozen=True, kw_only=True)
class PointEnsemble(_EnsembleSettings):
    """The settings of a deep ensemble.

    Attributes:
        members: how many networks.
        member_seed: of the members' initial weights.
        reinitialize: whether members get their own initial weights; not where a pretrained network is fine-tuned.
        keep_dropout: whether the network's dropout stays on at prediction, as in `MCDropout`.
    """

    keep_dropout: bool = False


@dataclass(frozen=True, kw_only=True)
class Mixture(_EnsembleSettings, WarmMeanField):
    """The settings of an ensemble of mean fields, each from its own trained point; see also `PointEnsemble`."""


def _networks(net: Network, settings: _EnsembleSettings) -> list[nn.Module]:
    networks: list[nn.Module] = []
    for member in range(settings.members):
        with seeded(member_seed(settings.member_seed, member)):
            networks.append(member_network(net, member, settings.reinitialize))
    return networks


def _ensemble(net: Network, settings: PointEnsemble) -> Plan:
    kind = MCDropout if settings.keep_dropout else Point
    members = [kind(each) for each in _networks(net, settings)]
    return Plan(Ensemble(members), settings.objective(), settings.fit())


def _mixture(net: Network, settings: Mixture) -> Plan:
    members = [settings.posterior(each) for each in _networks(net, settings)]
    return Plan(Ensemble(members), settings.objective(settings.beta), settings.fit(samples=settings.samples))


ENSEMBLE = Method(
    "ensemble", "ensemble", "Several plain networks, each trained on its own, that vote.", PointEnsemble, _ensemble
)
MIXTURE = Method("mixture", "mixture", "An ensemble of Gaussians, each from its own trained point.", Mixture, _mixture)
