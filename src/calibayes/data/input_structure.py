"""Inputs of any structure: a tensor, or tuples and dicts of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calibayes.errors import DataError
from calibayes.numpy_arrays import from_numpy

__all__ = ["as_tensors", "batch_length", "rows", "tensors_in", "to_device"]


def rows(inputs: Any, index: slice | Tensor) -> Any:
    """Return the chosen examples of inputs of any structure."""
    return _mapped(inputs, lambda part: part[index.to(part.device)] if isinstance(index, Tensor) else part[index])


def to_device(inputs: Any, device: torch.device) -> Any:
    """Return inputs of any structure on ``device``."""
    return _mapped(inputs, lambda part: part.to(device, non_blocking=True))


def _mapped(inputs: Any, function: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(inputs, Tensor):
        return function(inputs)
    if isinstance(inputs, Mapping):
        return {key: _mapped(value, function) for key, value in inputs.items()}
    if isinstance(inputs, Sequence) and not isinstance(inputs, str):
        return tuple(_mapped(value, function) for value in inputs)
    return inputs


def batch_length(inputs: Any, name: str) -> int:
    """Return the number of examples in inputs of any structure; all tensors must agree."""
    parts = tensors_in(inputs)
    lengths = [part.shape[0] if part.dim() else 0 for part in parts]  # not len, which would fix it in an exported graph
    if not lengths or any(length != lengths[0] for length in lengths):
        shapes = ", ".join(str(list(part.shape)) for part in parts) or "none"
        raise DataError(
            f"The inputs of `{name}` must be tensors with the same number of examples, but their shapes are {shapes}."
        )
    return lengths[0]


def tensors_in(inputs: Any) -> list[Tensor]:
    """Return all tensors in inputs of any structure."""
    if isinstance(inputs, Tensor):
        return [inputs]
    values: Iterable[Any] = ()
    if isinstance(inputs, tuple | list):  # first: this runs at every call of a network, and abstract classes are slow
        values = inputs
    elif isinstance(inputs, Mapping):
        values = inputs.values()
    elif isinstance(inputs, Sequence) and not isinstance(inputs, str):
        values = inputs
    return [tensor for value in values for tensor in tensors_in(value)]


def as_tensors(inputs: Any) -> Any:
    """Return inputs of any structure with arrays turned into tensors."""
    if isinstance(inputs, np.ndarray):
        if inputs.dtype.kind not in "fiubc":
            raise DataError(
                f"Inputs must be numbers, but an array has dtype {inputs.dtype}. Convert it, say `x.astype('float32')`."
            )
        return from_numpy(inputs)
    if isinstance(inputs, Mapping):
        return {key: as_tensors(value) for key, value in inputs.items()}
    if isinstance(inputs, tuple | list) and any(isinstance(value, Tensor | np.ndarray) for value in inputs):
        return tuple(as_tensors(value) for value in inputs)
    return inputs
