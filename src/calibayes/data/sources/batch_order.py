"""The order of the examples: a function of the seed and the position alone."""

from __future__ import annotations

import torch
from torch import Tensor

from calibayes.randomness import generator_for

__all__ = ["choice", "shuffled"]


def shuffled(size: int, steps: int, seed: int, epoch: int) -> tuple[Tensor, ...]:
    """The batches of an epoch, which differ in size by at most one.

    A small batch left over at the end would move the weights as far as a large one, in a direction of chance, and what is
    measured after the epoch would be measured right after that.
    """
    return _permutation(size, seed, "shuffle", epoch).tensor_split(steps)


def _permutation(size: int, seed: int, *place: int | str) -> Tensor:
    return torch.randperm(size, generator=generator_for(torch.device("cpu"), seed, *place))


def choice(size: int, count: int, seed: int, *place: int | str) -> Tensor:
    """``count`` examples at random, with repetition only where there are not enough."""
    if count <= size:
        return _permutation(size, seed, *place)[:count]
    return torch.randint(size, (count,), generator=generator_for(torch.device("cpu"), seed, *place))
