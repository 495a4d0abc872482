"""The network of a classifier: sized by the data, or the user's own."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import nn

from calibayes.errors import InvalidArgumentError, UnsupportedNetworkError
from calibayes.networks import MLP
from calibayes.randomness import preserved_global_state, seed_globally

__all__ = ["NetworkChoice", "built_network", "sized"]

NetworkChoice = Literal["auto"] | nn.Module | Callable[[int, int], nn.Module]


def built_network(network: NetworkChoice, rows: int, features: int, classes: int, seed: int) -> nn.Module:
    """The network with its initial weights, which depend only on the seed; the caller's generators are not changed."""
    if isinstance(network, nn.Module):
        return copy.deepcopy(network)
    if network != "auto" and not callable(network):
        raise InvalidArgumentError(
            "Expected `network` to be 'auto', a function of the numbers of features and classes that returns a "
            f"torch.nn.Module, or a torch.nn.Module, but got {network!r}."
        )
    with preserved_global_state(torch.device("cpu")):
        seed_globally(seed, "initial weights", everything=True)
        built = network(features, classes) if callable(network) else sized(rows, features, classes)
    if not isinstance(built, nn.Module):
        raise UnsupportedNetworkError(f"Expected `network` to return a torch.nn.Module, but got {type(built).__name__}.")
    return built


def sized(rows: int, features: int, classes: int) -> MLP:
    r"""A perceptron for a table: two hidden layers as wide as the power of two nearest to $2\sqrt{\text{rows}}$, 16 to 256.

    Examples:
        >>> [sized(rows, 4, 3).layers[0].out_features for rows in (20, 150, 1800, 50_000)]
        [16, 32, 64, 256]
    """
    width = 2 ** round(math.log2(2 * math.sqrt(rows)))
    return MLP(features, [min(max(width, 16), 256)] * 2, classes)
