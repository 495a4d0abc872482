"""The networks of a prediction, drawn once and kept, for services that predict again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn

from calibayes.posterior.abstract_posterior import Output, Posterior, Samples
from calibayes.posterior.ensemble import member_samples
from calibayes.posterior.network_posterior import NetworkPosterior

__all__ = ["DrawnNetwork", "DrawnNetworks", "drawn_networks"]

_MOST_BYTES = 1 << 30


class DrawnNetwork(NamedTuple):
    """A network in evaluation mode, and the number of its member in an `Ensemble` (or 0)."""

    member: int
    network: nn.Module


@final
class DrawnNetworks(Sequence[DrawnNetwork]):
    """Networks that were drawn; a fixed first layer that several have in common runs once for all of them.

    A layer says of itself that it is fixed, by an attribute ``fixed = True``: it has buffers and settings, but nothing is
    learnt or drawn in it.
    """

    def __init__(self, networks: Sequence[DrawnNetwork]) -> None:
        self._networks = tuple(networks)
        self._layers: list[nn.Module] = []  # fixed first layers, each of them once
        self._parts: list[tuple[int | None, nn.Module]] = [self._cut(each.network) for each in self._networks]

    def _cut(self, network: nn.Module) -> tuple[int | None, nn.Module]:
        """Return the place of a network's fixed first layer, and the rest; None and the whole network if it has none."""
        if not isinstance(network, nn.Sequential) or not getattr(network[0], "fixed", False):
            return None, network
        for place, known in enumerate(self._layers):
            if _are_the_same(known, network[0]):
                return place, network[1:]
        self._layers.append(network[0])
        return len(self._layers) - 1, network[1:]

    def __len__(self) -> int:
        return len(self._networks)

    def __getitem__(self, place: Any) -> Any:
        return self._networks[place]

    def outputs(self, batches: Sequence[Tensor]) -> Iterator[Output]:
        """Yield the outputs of each network for some batches of inputs."""
        encoded: dict[int | None, Sequence[Tensor]] = {None: batches}
        for number, layer in enumerate(self._layers):
            encoded[number] = [layer(batch) for batch in batches]
        for each, (place, rest) in zip(self._networks, self._parts, strict=True):
            yield Output(each.member, [rest(batch) for batch in encoded[place]])


def _are_the_same(first: nn.Module, other: nn.Module) -> bool:
    """Return True if two fixed layers turn the same inputs into the same outputs."""
    if type(first) is not type(other):
        return False
    settings, others = ({name: each for name, each in vars(layer).items() if name[0] != "_"} for layer in (first, other))
    state, other_state = first.state_dict(), other.state_dict()
    return settings == others and all(torch.equal(value, other_state[name]) for name, value in state.items())


@torch.no_grad()
def drawn_networks(posterior: Posterior, samples: Samples, seed: int, most_bytes: int = _MOST_BYTES) -> DrawnNetworks | None:
    """Draw the networks that `calibayes.predict` averages over, with the same weights for the same seed.

    Returns None where they cannot be kept: the dropout of a sample is not in its weights, a network that is random in its last
    part only is faster as it is, and samples of a large network take too much memory.

    Args:
        posterior: a trained posterior.
        samples: of the weights, or ``"mean"``.
        seed: of the samples.
        most_bytes: of memory that the weights may take.

    Examples:
        >>> posterior = calibayes.MeanField(torch.nn.Linear(4, 3), init_std=0.5)
        >>> networks = drawn_networks(posterior, 8, seed=0)
        >>> inputs = torch.randn(6, 4)
        >>> probs = torch.stack([each.network(inputs).softmax(-1) for each in networks]).mean(0)
        >>> torch.allclose(probs, calibayes.predict(posterior, inputs, samples=8).probs)
        True
    """
    networks: list[DrawnNetwork] = []
    size = 0
    for index, (member, own, own_seed) in enumerate(member_samples(posterior.members, samples, seed)):
        if own == "closed-form" or member.head is not None or not _weights_are_all(member):
            return None
        with member.evaluating():
            for vectors, generator in member.draws(own, own_seed):
                if own != "mean" and member.masks(generator) is not None:
                    return None
                size += sum(vector.nbytes for vector in vectors)
                if size > most_bytes:
                    return None
                networks.append(DrawnNetwork(index, member.network_at(vectors)))
    return DrawnNetworks(networks)


def _weights_are_all(member: NetworkPosterior) -> bool:
    """Return True if a sample is nothing but its weights, run as any other."""
    kind = type(member)
    return kind.one_network is NetworkPosterior.one_network and kind.outputs is NetworkPosterior.outputs
