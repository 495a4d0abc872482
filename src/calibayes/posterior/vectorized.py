"""Several samples of the weights through the network at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from calibayes.posterior.network_outputs import logits_of
from calibayes.posterior.network_posterior import NetworkPosterior

__all__ = ["call_samples", "pays_to_vectorize"]

# Batched matrix products beat a loop over samples; batched convolutions do not (they become grouped ones).
_GAINS = (nn.Linear, nn.Flatten, nn.Unflatten, nn.Identity, nn.LayerNorm, nn.GroupNorm)
_ACTIVATIONS = "torch.nn.modules.activation"


def pays_to_vectorize(posterior: NetworkPosterior) -> bool:
    """Return True if the network consists only of linear layers, activations and the like."""
    leaves = [part for part in posterior.structure().modules() if next(part.children(), None) is None]
    return all(isinstance(part, _GAINS) or type(part).__module__ == _ACTIVATIONS for part in leaves)


def call_samples(
    posterior: NetworkPosterior, vectors: Sequence[Tensor], inputs: Any, examples: int, buffers: dict[str, Tensor]
) -> Tensor:
    """Logits ``[C, n, K]`` for weights given as stacked flat vectors ``[C, N]``, one per group.

    Raises:
        RuntimeError: the network does something that samples side by side do not allow, such as updating statistics.
    """

    def one(*sample: Tensor) -> Tensor:
        updated = dict(buffers)
        logits = logits_of(posterior.call(sample, inputs, updated), examples)
        replaced = [name for name, value in updated.items() if value is not buffers[name]]
        if replaced:
            raise RuntimeError(f"the network puts a new tensor in the place of its buffer {replaced[0]!r}")
        return logits

    logits: Tensor = torch.vmap(one, randomness="different")(*vectors)
    return logits
