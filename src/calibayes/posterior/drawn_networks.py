"""The networks of a prediction, drawn once and kept, for services that predict again and again."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from calibayes.posterior.abstract_posterior import Posterior, Samples
from calibayes.posterior.ensemble import member_samples
from calibayes.posterior.network_posterior import NetworkPosterior

__all__ = ["DrawnNetwork", "drawn_networks"]

_MOST_BYTES = 1 << 30


class DrawnNetwork(NamedTuple):
    """A network in evaluation mode, and the number of its member in an `Ensemble` (or 0)."""

    member: int
    network: nn.Module


@torch.no_grad()
def drawn_networks(
    posterior: Posterior, samples: Samples, seed: int, most_bytes: int = _MOST_BYTES
) -> list[DrawnNetwork] | None:
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
    return networks


def _weights_are_all(member: NetworkPosterior) -> bool:
    """Return True if a sample is nothing but its weights, run as any other."""
    kind = type(member)
    return kind.one_network is NetworkPosterior.one_network and kind.outputs is NetworkPosterior.outputs
