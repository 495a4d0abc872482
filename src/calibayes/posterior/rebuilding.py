"""Rebuild a posterior from what a file says about it, on a network of the same architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from calibayes.errors import ModelFileError
from calibayes.posterior.flat import Skeleton

__all__ = ["OtherArchitectureError", "described", "network_with_roles"]


class OtherArchitectureError(ModelFileError):
    """A file and a network do not have the same weights or buffers."""


def described(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Shape and type of tensors by name, in plain values."""
    return {name: {"shape": list(value.shape), "dtype": str(value.dtype)} for name, value in tensors.items()}


def network_with_roles(net: nn.Module, config: Mapping[str, Any]) -> nn.Module:
    """A copy of a network in which what was frozen is frozen, and nothing else.

    Args:
        net: a network; its weights do not matter.
        config: what ``NetworkPosterior.config`` returned.

    Raises:
        OtherArchitectureError: the network has other weights or buffers than the one that ``config`` describes.
    """
    skeleton = Skeleton(net)
    firsts = {id(tensor): name for name, tensor in reversed(skeleton.parameters.items())}
    parameters = {name: tensor for name, tensor in skeleton.parameters.items() if firsts[id(tensor)] == name}
    firsts = {id(tensor): name for name, tensor in reversed(skeleton.buffers.items())}
    buffers = {name: tensor for name, tensor in skeleton.buffers.items() if firsts[id(tensor)] == name}
    _compare(config["parameters"], described(parameters), "parameter")
    _compare(config["buffers"], described(buffers), "buffer")
    roles = config["roles"]
    trainable = [name for name, role in roles.items() if role != "frozen"]
    return skeleton.filled({**skeleton.parameters, **skeleton.buffers}, trainable)


def _compare(saved: Mapping[str, Any], here: Mapping[str, Any], what: str) -> None:
    for name in [*saved, *here]:
        if name not in here:
            problem = f"it has a {what} {name!r}, the network has not"
        elif name not in saved:
            problem = f"the network has a {what} {name!r}, it has not"
        elif saved[name] != here[name]:
            problem = f"{what} {name!r} has {_told(saved[name])} in the file and {_told(here[name])} in the network"
        else:
            continue
        raise OtherArchitectureError(problem)


def _told(entry: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in entry.items())
