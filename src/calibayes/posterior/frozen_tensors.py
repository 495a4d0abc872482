"""Tensors that a posterior holds without training them: frozen weights and buffers, by their names in the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor, nn

__all__ = ["first_names", "held_key", "held_tensors", "hold"]


def hold(tensors: Mapping[str, Tensor], transient: Iterable[str] = ()) -> nn.Module:
    """Copies of tensors as buffers of a module, so that they move and are saved with the posterior."""
    held, left_out = nn.Module(), set(transient)
    for name, tensor in tensors.items():
        held.register_buffer(held_key(name), tensor.detach().clone(), persistent=name not in left_out)
    return held


def held_tensors(held: nn.Module, names: Iterable[str]) -> dict[str, Tensor]:
    """What `hold` holds, by the names it was given."""
    return {name: held._buffers[held_key(name)] for name in names}  # type: ignore[misc]


def held_key(name: str) -> str:
    """A dotted name as the name of a buffer, which may have no dots."""
    return name.replace(".", "/")


def first_names(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """For every name of a tensor the first one that it has."""
    first: dict[int, str] = {}
    return {name: first.setdefault(id(tensor), name) for name, tensor in tensors.items()}
