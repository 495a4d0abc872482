"""Networks that were trained, as a file describes them."""

from __future__ import annotations

from typing import Any

from torch import nn

from calibayes.errors import ModelFileError
from calibayes.files.networks import NetworkPlan
from calibayes.networks import MLP, Normalize, ResNetCIFAR, SmallCNN, TextCNN, WordBag
from calibayes.networks.boosted_trees import BoostedTrees
from calibayes.networks.table_inputs import TableInputs
from calibayes.networks.table_network import HeadedMLP
from calibayes.networks.text_network import TextLinear, TextNetwork

__all__ = ["plan_of"]


def plan_of(network: nn.Module, side: int | None = None) -> NetworkPlan:
    """Return the name and sizes of a network, by which a file describes it.

    Args:
        network: one for tables, texts or images that a representation of `calibayes.crossfit` makes, or a method that trains no
            network.
        side: the height and width of images; other networks need none.
    """
    match network:
        case BoostedTrees():
            return _trees(network)
        case TextNetwork():
            return NetworkPlan("text-network", {"words": network.words, "dim": network.dim, "classes": network.classes})
        case TextLinear():
            return NetworkPlan("text-linear", {"words": network.words, "classes": network.classes})
        case WordBag():
            words, dim = network.embedding.weight.shape
            return NetworkPlan("word-bag", {"words": words, "dim": dim, "classes": _outputs(network)}, _dropout(network))
        case TextCNN():
            words, dim = network.embedding.weight.shape
            sizes = {"words": words, "dim": dim, "classes": _outputs(network), "pool": network.pool}
            return NetworkPlan("text-cnn", sizes, _dropout(network))
        case nn.Sequential() if len(network) == 2:
            first, rest = network
            if isinstance(first, TableInputs):
                return _of_table(first, rest)
            if isinstance(first, nn.Sequential) and isinstance(first[0], Normalize):
                return NetworkPlan("image-linear", _of_images(first[0], rest, side))
            if isinstance(first, Normalize) and isinstance(rest, SmallCNN | ResNetCIFAR):
                name = "small-cnn" if isinstance(rest, SmallCNN) else "resnet20"
                return NetworkPlan(name, _of_images(first, rest, side), _dropout(rest))
    raise ModelFileError(f"A model file cannot describe a {type(network).__name__}. Use a method and network for files.")


def _trees(network: BoostedTrees) -> NetworkPlan:
    sizes: dict[str, Any] = {name: getattr(network, name) for name in ("features", "classes", "trees", "nodes", "depth")}
    return NetworkPlan("boosted-trees", {**sizes, "sets": len(network.members), "categories": network.members.shape[1]})


def _of_table(inputs: TableInputs, rest: nn.Module) -> NetworkPlan:
    columns = {
        "numbers": inputs.numbers,
        "category_columns": [place for place, _ in inputs.categories],
        "categories": [size for _, size in inputs.categories],
        "bins": inputs.bins,
        "frequent": inputs.frequent,
    }
    if isinstance(rest, HeadedMLP):
        return NetworkPlan("table-network", {**columns, "hidden": rest.hidden, "heads": rest.heads, "classes": rest.classes})
    if isinstance(rest, MLP):
        hidden = [part.out_features for part in rest.modules() if isinstance(part, nn.Linear)][:-1]
        return NetworkPlan("table-mlp", {**columns, "hidden": hidden, "classes": _outputs(rest)}, _dropout(rest))
    return NetworkPlan("table-linear", {**columns, "classes": _outputs(rest)})


def _of_images(normalize: Normalize, network: nn.Module, side: int | None) -> dict[str, Any]:
    mean, std = normalize.mean.flatten().tolist(), normalize.std.flatten().tolist()
    assert side is not None  # those who have images know their size
    return {"channels": len(mean), "side": side, "mean": mean, "std": std, "classes": _outputs(network)}


def _outputs(network: nn.Module) -> int:
    """The outputs of the last linear layer."""
    return [part.out_features for part in network.modules() if isinstance(part, nn.Linear)][-1]


def _dropout(network: nn.Module) -> float:
    """The probability of the dropout layer that a method has put in, or 0."""
    return next((part.p for part in network.modules() if isinstance(part, nn.Dropout)), 0.0)
