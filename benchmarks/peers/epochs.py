"""Epochs of plain PyTorch, for methods that train a network as it is."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers.interface import Data
from benchmarks.training_step import BATCH, adam

__all__ = ["mean_of_members", "member_epoch"]


def member_epoch(
    net: nn.Module, data: Data, *, members: int = 1, after_step: Callable[[], object] | None = None
) -> Callable[[], object]:
    """An epoch of Adam over the data, in order; trains the network given.

    Args:
        net: returns the logits of each member in turn, ``[members · n, K]``.
        data: inputs and labels.
        members: how often the labels are repeated.
        after_step: called after every step.
    """
    optimizer = adam([p for p in net.parameters() if p.requires_grad])
    batches = [(x, y.repeat(members)) for x, y in zip(*(part.split(BATCH) for part in data), strict=True)]

    def epoch() -> None:
        net.train()
        for x, y in batches:
            optimizer.zero_grad()
            (members * F.cross_entropy(net(x), y)).backward()
            optimizer.step()
            if after_step is not None:
                after_step()

    return epoch


def mean_of_members(logits: Tensor, members: int) -> Tensor:
    """Mean class probabilities ``[n, K]`` of logits ``[members · n, K]``, one member after the other."""
    return logits.reshape(members, -1, logits.shape[-1]).softmax(-1).mean(0)
