"""Small networks to check posteriors on, each with data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from calibayes.data.input_structure import batch_length
from calibayes.errors import InvalidArgumentError
from calibayes.randomness import seeded

__all__ = ["DROPOUT_NETWORKS", "NETWORKS", "NetworkCase", "chosen_cases"]

_EXAMPLES, _CLASSES = 22, 3


@dataclass(frozen=True)
class NetworkCase:
    """A kind of network, and inputs for it.

    Attributes:
        build: makes a network, with initial weights of PyTorch's global generator.
        inputs: a tensor, or a tuple or dict of tensors: at least 12 examples.
        classes: how many logits the network returns for each example.

    Examples:
        >>> case = calibayes.testing.NetworkCase(lambda: torch.nn.Linear(2, 3), torch.randn(20, 2))
        >>> x, y = case.data()
        >>> case.network()(x).shape, y[:4]
        (torch.Size([20, 3]), tensor([0, 1, 2, 0]))
    """

    build: Callable[[], nn.Module]
    inputs: Any
    classes: int = _CLASSES

    def network(self, *, seed: int = 1, double: bool = False) -> nn.Module:
        """A network; another seed gives other weights, and the caller's global generator is left as it was."""
        with seeded(seed):
            net = self.build()
        return net.double() if double else net

    def data(self, *, double: bool = False) -> tuple[Any, Tensor]:
        """Inputs and labels."""
        x = _doubled(self.inputs) if double else self.inputs
        return x, torch.arange(batch_length(x, "inputs")) % self.classes

    def has(self, *kinds: type[nn.Module]) -> bool:
        """Return True if the network has a part of these kinds; a dropout of 0 does not count."""
        parts = [part for part in self.network().modules() if isinstance(part, kinds)]
        return any(not isinstance(part, _DropoutNd) or part.p > 0 for part in parts)

    @property
    def has_dropout(self) -> bool:
        """True if the network draws dropout masks."""
        return self.has(_DropoutNd)


class _TiedAndFrozen(nn.Module):
    """A weight in two layers, a layer with two names, and a layer that stays as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.again = self.second
        self.fixed = nn.Linear(4, 4).requires_grad_(False)
        self.out = nn.Linear(4, _CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.fixed(self.again(self.first(x).tanh()).tanh()))  # type: ignore[no-any-return]


def _perceptron(dropout: float = 0.0) -> nn.Module:
    between = [nn.Tanh(), nn.Dropout(dropout)] if dropout else [nn.Tanh()]
    return nn.Sequential(nn.Linear(4, 6), *between, nn.Linear(6, _CLASSES))


def _convolutions(dropout: float = 0.0) -> nn.Module:
    """Without a bias before the norm: its gradient would be rounding error alone."""
    between = [nn.ReLU(), nn.Dropout2d(dropout)] if dropout else [nn.ReLU()]
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, bias=False), nn.BatchNorm2d(3, eps=0.1), *between, nn.Flatten(), nn.Linear(12, _CLASSES)
    )


def _normal(*shape: int) -> Tensor:
    return torch.randn(_EXAMPLES, *shape, generator=torch.Generator().manual_seed(2))


NETWORKS: Mapping[str, NetworkCase] = {
    "perceptron": NetworkCase(_perceptron, _normal(4)),
    "convolutions with batch norm": NetworkCase(_convolutions, _normal(1, 4, 4)),
    "tied and frozen weights": NetworkCase(_TiedAndFrozen, _normal(4)),
}
"""The networks that posteriors are checked on, by name."""

DROPOUT_NETWORKS: Mapping[str, NetworkCase] = {
    "perceptron with dropout": NetworkCase(partial(_perceptron, 0.3), _normal(4)),
    "convolutions with batch norm and dropout": NetworkCase(partial(_convolutions, 0.3), _normal(1, 4, 4)),
}
"""Networks for posteriors that need dropout."""


def chosen_cases(
    networks: Mapping[str, NetworkCase | Callable[[], nn.Module]] | None, inputs: Any, classes: int
) -> dict[str, NetworkCase]:
    """The cases that a caller asked for; functions that make networks go with ``inputs``."""
    if networks is None:
        if inputs is not None:
            raise InvalidArgumentError("`inputs` are for your own `networks`: pass `networks={'mine': make_net}` too.")
        return dict(NETWORKS)
    cases = {}
    for name, each in networks.items():
        if not isinstance(each, NetworkCase) and inputs is None:
            raise InvalidArgumentError(f"Expected `inputs` for the network {name!r}, or a NetworkCase, but got neither.")
        cases[name] = each if isinstance(each, NetworkCase) else NetworkCase(each, inputs, classes)
    return cases


def _doubled(inputs: Any) -> Any:
    if isinstance(inputs, Tensor):
        return inputs.double() if inputs.is_floating_point() else inputs
    if isinstance(inputs, Mapping):
        return {key: _doubled(value) for key, value in inputs.items()}
    return tuple(_doubled(value) for value in inputs)
