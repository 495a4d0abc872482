"""The networks for files: built by name, from a fixed list, with checked sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from calibayes.checked_fields import Fields
from calibayes.errors import ModelFileError
from calibayes.networks import MLP, Normalize, SmallCNN, TextCNN, WordBag, resnet20
from calibayes.networks.boosted_trees import BoostedTrees
from calibayes.networks.head_dropout import with_dropout
from calibayes.networks.table_inputs import TableInputs
from calibayes.networks.table_network import HeadedMLP
from calibayes.networks.text_network import TextLinear, TextNetwork
from calibayes.networks.word_weights import WordWeights

__all__ = ["NetworkPlan", "check_weights_fit"]

_MOST_CLASSES = 1000
_MOST_WIDTH = 4096
_MOST_INPUTS = 1_000_000


@dataclass(frozen=True)
class NetworkPlan:
    """The name and the sizes of a network; calling it makes a new one.

    Attributes:
        name: ``"table-network"``, ``"table-mlp"``, ``"table-linear"``, ``"boosted-trees"``, ``"mlp"``, ``"text-network"``,
            ``"text-linear"``, ``"word-bag"``, ``"text-cnn"``, ``"image-linear"``, ``"small-cnn"`` or ``"resnet20"``.
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


def check_weights_fit(plans: Sequence[NetworkPlan], weights: Mapping[str, Tensor], path: str) -> None:
    """Raise unless a file holds as many bytes of weights as its networks have, before memory is allocated for them."""
    with torch.device("meta"):
        wanted = sum(weight.nbytes for plan in plans for weight in plan().parameters())
    stored = sum(weight.nbytes for weight in weights.values())
    if wanted > stored:
        raise ModelFileError(f"{path} describes a network of {wanted:,} bytes, but holds {stored:,} bytes of weights.")


def _mlp_sizes(fields: Fields) -> dict[str, Any]:
    hidden = list(fields.sizes("hidden", 16, _MOST_WIDTH))
    return {"inputs": fields.size("inputs", 1, _MOST_INPUTS), "hidden": hidden, "classes": _classes(fields)}


def _input_sizes(fields: Fields) -> dict[str, Any]:
    """Read the columns of a table, and what `TableInputs` makes of them."""
    numbers, columns = (list(fields.sizes(name, _MOST_INPUTS, _MOST_INPUTS, 0)) for name in ("numbers", "category_columns"))
    categories = list(fields.sizes("categories", _MOST_INPUTS, _MOST_INPUTS))
    if len(columns) != len(categories) or not numbers + columns:
        raise fields.wrong("categories", "a number of categories for each column of them")
    return {
        "numbers": numbers,
        "category_columns": columns,
        "categories": categories,
        "bins": fields.size("bins", 0, _MOST_WIDTH),
        "frequent": fields.size("frequent", 0, _MOST_WIDTH),
        "classes": _classes(fields),
    }


def _table_sizes(fields: Fields) -> dict[str, Any]:
    hidden = list(fields.sizes("hidden", 16, _MOST_WIDTH))
    return {**_input_sizes(fields), "hidden": hidden, "heads": fields.size("heads", 1, 1024)}


def _tree_sizes(fields: Fields) -> dict[str, Any]:
    most = {"features": _MOST_INPUTS, "trees": 1_000_000, "nodes": 1_000_000, "depth": 10_000, "sets": 10_000_000}
    found = {name: fields.size(name, 0 if name in ("depth", "sets") else 1, limit) for name, limit in most.items()}
    return {**found, "categories": fields.size("categories", 0, _MOST_INPUTS), "classes": _classes(fields)}


def _table_inputs(sizes: Mapping[str, Any]) -> TableInputs:
    categories = list(zip(sizes["category_columns"], sizes["categories"], strict=True))
    return TableInputs(sizes["numbers"], categories, bins=sizes["bins"], frequent=sizes["frequent"])


def _table_network(sizes: Mapping[str, Any]) -> nn.Module:
    inputs = _table_inputs(sizes)
    return nn.Sequential(inputs, HeadedMLP(inputs.width, sizes["hidden"], sizes["classes"], heads=sizes["heads"]))


def _table_mlp(sizes: Mapping[str, Any]) -> nn.Module:
    inputs = _table_inputs(sizes)
    return nn.Sequential(inputs, MLP(inputs.width, sizes["hidden"], sizes["classes"]))


def _table_linear(sizes: Mapping[str, Any]) -> nn.Module:
    inputs = _table_inputs(sizes)
    return nn.Sequential(inputs, nn.Linear(inputs.width, sizes["classes"]))


def _word_sizes(fields: Fields) -> dict[str, Any]:
    return {**_text_sizes(fields), "dim": fields.size("dim", 1, _MOST_WIDTH)}


def _text_sizes(fields: Fields) -> dict[str, Any]:
    return {"words": fields.size("words", 2, 2 * _MOST_INPUTS), "classes": _classes(fields)}


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


def _image_linear(sizes: Mapping[str, Any]) -> nn.Module:
    flat = nn.Sequential(Normalize(sizes["mean"], sizes["std"]), nn.Flatten())
    return nn.Sequential(flat, nn.Linear(sizes["channels"] * sizes["side"] ** 2, sizes["classes"]))


# The function that reads the sizes of each network from a file, and the one that builds it.
_NETWORKS: dict[str, tuple[Callable[[Fields], dict[str, Any]], Callable[[Mapping[str, Any]], nn.Module]]] = {
    "table-network": (_table_sizes, _table_network),
    "table-mlp": (
        lambda fields: {**_input_sizes(fields), "hidden": list(fields.sizes("hidden", 16, _MOST_WIDTH))},
        _table_mlp,
    ),
    "table-linear": (_input_sizes, _table_linear),
    "boosted-trees": (_tree_sizes, lambda sizes: BoostedTrees(**sizes)),
    "mlp": (_mlp_sizes, lambda sizes: MLP(sizes["inputs"], list(sizes["hidden"]), sizes["classes"])),
    "text-network": (
        _word_sizes,
        lambda sizes: TextNetwork(WordWeights(sizes["words"]), sizes["classes"], dim=sizes["dim"]),
    ),
    "text-linear": (_text_sizes, lambda sizes: TextLinear(WordWeights(sizes["words"]), sizes["classes"])),
    "word-bag": (_word_sizes, lambda sizes: WordBag(sizes["words"], sizes["classes"], dim=sizes["dim"])),
    "text-cnn": (
        lambda fields: {**_word_sizes(fields), "pool": fields.size("pool", 2, 5)},
        lambda sizes: TextCNN(
            (sizes["words"], sizes["dim"]), sizes["classes"], channels=64, hidden=64, pool=sizes["pool"], padding=0
        ),
    ),
    "image-linear": (_image_sizes, _image_linear),
    "small-cnn": (
        _image_sizes,
        lambda sizes: _with_normalization(SmallCNN(sizes["classes"], channels=sizes["channels"], size=sizes["side"]), sizes),
    ),
    "resnet20": (_image_sizes, lambda sizes: _with_normalization(resnet20(sizes["classes"]), sizes)),
}
