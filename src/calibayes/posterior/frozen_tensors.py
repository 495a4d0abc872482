"""Tensors that a posterior holds without training them: frozen weights and buffers, by their names in the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor, nn

__all__ = ["buffer_key", "first_names", "store_tensors", "stored_tensors"]


def store_tensors(tensors: Mapping[str, Tensor], transient: Iterable[str] = ()) -> nn.Module:
    """Copies of tensors as buffers of a module, so that they move and are saved with the posterior."""
    held, left_out = nn.Module(), set(transient)
    for name, tensor in tensors.items():
        held.register_buffer(buffer_key(name), tensor.detach().clone(), persistent=name not in left_out)
    return held


def stored_tensors(held: nn.Module, names: Iterable[str]) -> dict[str, Tensor]:
    """Return what `store_tensors` stored, by the names it was given."""
    return {name: held._buffers[buffer_key(name)] for name in names}  # type: ignore[misc]


def buffer_key(name: str) -> str:
    """A dotted name as the name of a buffer, which may have no dots."""
    return name.replace(".", "/")


def first_names(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """For every name of a tensor the first one that it has."""
    first: dict[int, str] = {}
    return {name: first.setdefault(id(tensor), name) for name, tensor in tensors.items()}
