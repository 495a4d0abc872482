"""Inputs of any structure: a tensor, or tuples and dicts of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calibayes.errors import DataError
from calibayes.numpy_arrays import from_numpy

__all__ = ["as_tensors", "batch_length", "rows", "tensors_in", "to_device"]


def rows(inputs: Any, index: slice | Tensor) -> Any:
    """The chosen examples of inputs of any structure."""
    if isinstance(inputs, Tensor):
        return inputs[index.to(inputs.device)] if isinstance(index, Tensor) else inputs[index]
    if isinstance(inputs, Mapping):
        return {key: rows(value, index) for key, value in inputs.items()}
    if isinstance(inputs, Sequence) and not isinstance(inputs, str):
        return tuple(rows(value, index) for value in inputs)
    return inputs


def to_device(inputs: Any, device: torch.device) -> Any:
    """Inputs of any structure, on ``device``."""
    if isinstance(inputs, Tensor):
        return inputs.to(device, non_blocking=True)
    if isinstance(inputs, Mapping):
        return {key: to_device(value, device) for key, value in inputs.items()}
    if isinstance(inputs, Sequence) and not isinstance(inputs, str):
        return tuple(to_device(value, device) for value in inputs)
    return inputs


def batch_length(inputs: Any, name: str) -> int:
    """Return the number of examples in inputs of any structure; all tensors must agree."""
    parts = tensors_in(inputs)
    lengths = {len(part) if part.dim() else 0 for part in parts}
    if len(lengths) != 1:
        shapes = ", ".join(str(list(part.shape)) for part in parts) or "none"
        raise DataError(
            f"The inputs of `{name}` must be tensors with the same number of examples, but their shapes are {shapes}."
        )
    return lengths.pop()


def tensors_in(inputs: Any) -> list[Tensor]:
    """All tensors in inputs of any structure."""
    if isinstance(inputs, Tensor):
        return [inputs]
    values: Iterable[Any] = ()
    if isinstance(inputs, tuple | list):  # asked first: this runs at every call of a network, and abstract classes take long
        values = inputs
    elif isinstance(inputs, Mapping):
        values = inputs.values()
    elif isinstance(inputs, Sequence) and not isinstance(inputs, str):
        values = inputs
    return [tensor for value in values for tensor in tensors_in(value)]


def as_tensors(inputs: Any) -> Any:
    """Inputs of any structure with tensors in the place of arrays."""
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
