"""Rebuild a posterior from what a file says about it, on a network of the same architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from calibayes.errors import ModelFileError
from calibayes.posterior.flat import Skeleton
from calibayes.posterior.weight_selection import tied_names

__all__ = ["OtherArchitectureError", "described", "network_with_roles"]


class OtherArchitectureError(ModelFileError):
    """A file and a network do not have the same weights or buffers."""


def described(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Shape and type of tensors by name, in plain values."""
    return {name: {"shape": list(value.shape), "dtype": str(value.dtype)} for name, value in tensors.items()}


def network_with_roles(net: nn.Module, config: Mapping[str, Any]) -> nn.Module:
    """A copy of a network in which what a ``NetworkPosterior.config`` says was frozen is frozen, and nothing else.

    Raises:
        OtherArchitectureError: the network has other weights or buffers than the one that ``config`` describes.
    """
    skeleton = Skeleton(net)
    for what, tensors in (("parameter", skeleton.parameters), ("buffer", skeleton.buffers)):
        _compare(config[f"{what}s"], described({names[0]: tensor for names, tensor in tied_names(tensors)}), what)
    trainable = [name for name, role in config["roles"].items() if role != "frozen"]
    return skeleton.filled({**skeleton.parameters, **skeleton.buffers}, trainable)


def _compare(saved: Mapping[str, Any], here: Mapping[str, Any], what: str) -> None:
    for name in [*saved, *here]:
        if name not in here:
            problem = f"it has a {what} {name!r}, the network does not"
        elif name not in saved:
            problem = f"the network has a {what} {name!r}, it does not"
        elif saved[name] != here[name]:
            problem = f"{what} {name!r} has {_shown(saved[name])} in the file and {_shown(here[name])} in the network"
        else:
            continue
        raise OtherArchitectureError(problem)


def _shown(entry: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in entry.items())
