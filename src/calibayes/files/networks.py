"""The networks for files: built by name, from a fixed list, with checked sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from calibayes.errors import ModelFileError
from calibayes.files.checked_fields import Fields
from calibayes.networks import MLP, Normalize, SmallCNN, TextCNN, WordBag, resnet20
from calibayes.networks.head_dropout import with_dropout

__all__ = ["NetworkPlan"]

_MOST_CLASSES = 1000
_MOST_WIDTH = 4096
_MOST_INPUTS = 1_000_000


@dataclass(frozen=True)
class NetworkPlan:
    """The name and the sizes of a network; calling it makes a new one.

    Attributes:
        name: ``"mlp"``, ``"word-bag"``, ``"text-cnn"``, ``"small-cnn"`` or ``"resnet20"``.
        sizes: its arguments: whole numbers, or lists of numbers.
        dropout: the probability of a dropout layer before the last layer; 0 for none.

    Examples:
        >>> sum(weight.numel() for weight in NetworkPlan("mlp", {"inputs": 4, "hidden": [8], "classes": 3})().parameters())
        67
    """

    name: str
    sizes: Mapping[str, Any]
    dropout: float = 0.0

    def __call__(self) -> nn.Module:
        """Return a new network."""
        network = _NETWORKS[self.name][1](self.sizes)
        return with_dropout(network, self.dropout) if self.dropout else network

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for a file."""
        return {"name": self.name, "sizes": dict(self.sizes), **({"dropout": self.dropout} if self.dropout else {})}

    @classmethod
    def of(cls, fields: Fields) -> NetworkPlan:
        """Invert `to_dict`; unreasonable sizes are rejected."""
        name = fields.text("name", tuple(_NETWORKS))
        dropout = fields.number("dropout", positive=True) if fields.has("dropout") else 0.0
        if dropout >= 1:
            raise fields.wrong("dropout", "a number below 1")
        return cls(name, _NETWORKS[name][0](fields.inside("sizes")), dropout)

    def check_fits(self, weights: Mapping[str, Tensor], path: str, members: int = 1) -> None:
        """Raise unless a file holds as many bytes of weights as its networks have, before memory is allocated for them."""
        with torch.device("meta"):
            wanted = members * sum(weight.nbytes for weight in self().parameters())
        stored = sum(weight.nbytes for weight in weights.values())
        if wanted > stored:
            raise ModelFileError(f"{path} describes a network of {wanted:,} bytes, but holds {stored:,} bytes of weights.")


def _mlp_sizes(fields: Fields) -> dict[str, Any]:
    hidden = list(fields.sizes("hidden", 16, _MOST_WIDTH))
    return {"inputs": fields.size("inputs", 1, _MOST_INPUTS), "hidden": hidden, "classes": _classes(fields)}


def _word_sizes(fields: Fields) -> dict[str, Any]:
    words, dim = fields.size("words", 2, _MOST_INPUTS), fields.size("dim", 1, _MOST_WIDTH)
    return {"words": words, "dim": dim, "classes": _classes(fields)}


def _image_sizes(fields: Fields) -> dict[str, Any]:
    channels = fields.size("channels", 1, 3)
    mean, std = fields.numbers("mean", 3), fields.numbers("std", 3, positive=True)
    if not len(mean) == len(std) == channels:
        raise fields.wrong("mean", f"{channels} numbers")
    side = fields.size("side", 10, 512)
    return {"channels": channels, "side": side, "mean": list(mean), "std": list(std), "classes": _classes(fields)}


def _classes(fields: Fields) -> int:
    return fields.size("classes", 2, _MOST_CLASSES)


def _with_normalization(network: nn.Module, sizes: Mapping[str, Any]) -> nn.Module:
    return nn.Sequential(Normalize(sizes["mean"], sizes["std"]), network)


# The function that reads the sizes of each network from a file, and the one that builds it.
_NETWORKS: dict[str, tuple[Callable[[Fields], dict[str, Any]], Callable[[Mapping[str, Any]], nn.Module]]] = {
    "mlp": (_mlp_sizes, lambda sizes: MLP(sizes["inputs"], list(sizes["hidden"]), sizes["classes"])),
    "word-bag": (_word_sizes, lambda sizes: WordBag(sizes["words"], sizes["classes"], dim=sizes["dim"])),
    "text-cnn": (
        lambda fields: {**_word_sizes(fields), "pool": fields.size("pool", 2, 5)},
        lambda sizes: TextCNN(
            (sizes["words"], sizes["dim"]), sizes["classes"], channels=64, hidden=64, pool=sizes["pool"], padding=0
        ),
    ),
    "small-cnn": (
        _image_sizes,
        lambda sizes: _with_normalization(SmallCNN(sizes["classes"], channels=sizes["channels"], size=sizes["side"]), sizes),
    ),
    "resnet20": (_image_sizes, lambda sizes: _with_normalization(resnet20(sizes["classes"]), sizes)),
}
