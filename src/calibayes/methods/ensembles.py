"""Ensembles: several networks, each trained on its own, that vote."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from torch import nn

from calibayes.checks import positive_integer
from calibayes.errors import UnsupportedNetworkError
from calibayes.methods.mean_fields import WarmMeanField
from calibayes.methods.method_settings import MethodSettings
from calibayes.methods.registry import Method, Network, Plan, one_network
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
            networks.append(_member_network(net, member, settings.reinitialize))
    return networks


def _member_network(net: Network, member: int, reinitialize: bool) -> nn.Module:
    """The network of a member of an ensemble: a given network is that of the first, copies with new weights of the others.

    Copies keep the weights unless they are to ``reinitialize``; a function makes the network of every member.
    """
    network = one_network(net)
    return network if network is not net or member == 0 or not reinitialize else _reinitialized(network)


def _reinitialized(net: nn.Module) -> nn.Module:
    """A copy whose layers have drawn new initial weights, from PyTorch's global generator."""
    copied = copy.deepcopy(net)
    for name, part in copied.named_modules():
        if next(part.parameters(recurse=False), None) is None:
            continue
        reset = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
        if reset is None:
            raise UnsupportedNetworkError(
                f"{name or 'the network'!r} ({type(part).__name__}) has weights but no `reset_parameters`, so a further member "
                "cannot be initialised. Pass a function that makes the network, or `reinitialize=False` for members that "
                "start from the same weights."
            )
        reset()
    return copied


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
