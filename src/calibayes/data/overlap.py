"""Check that two data sets share no examples, as far as possible without looking at their values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Subset, TensorDataset

from calibayes.data.augment import Augmented
from calibayes.data.input_structure import as_tensors
from calibayes.data.sources import examples_of
from calibayes.errors import DataOverlapError

__all__ = ["check_apart"]


def check_apart(first: Any, second: Any, first_name: str, second_name: str) -> None:
    """Raise `DataOverlapError` if both are the same data, views of the same memory, or subsets with a common index."""
    if first is None or second is None:
        return
    first, second = (examples_of(data) if isinstance(data, DataLoader) else data for data in (first, second))
    message = (
        f"`{first_name}` and `{second_name}` share examples, so the second would no longer be an honest check of the first. "
        "Split them apart."
    )
    if first is second or _memory_overlaps(first, second):
        raise DataOverlapError(message)
    (whole, chosen), (other, others) = _chosen(first), _chosen(second)
    if whole is other and (chosen is None or others is None or chosen & others):
        raise DataOverlapError(message)


def _chosen(data: Any) -> tuple[Any, set[int] | None]:
    """Return the data set behind a subset, also a nested one, and its indices there; ``None`` for all of them."""
    indices: list[int] | None = None
    while isinstance(data, Subset):
        indices = [int(data.indices[k]) for k in (range(len(data)) if indices is None else indices)]
        data = data.dataset
    return data, None if indices is None else set(indices)


def _memory_overlaps(first: Any, second: Any) -> bool:
    """Return True if a row of the inputs shares memory with one of the other's (labels may be one expanded constant)."""
    a, b = _first_tensor(first), _first_tensor(second)
    if a is None or b is None or not a.numel() or not b.numel() or a.device != b.device:
        return False
    return bool(torch.isin(_row_addresses(a), _row_addresses(b)).any())


def _first_tensor(data: Any) -> Tensor | None:
    data = data.tensors if isinstance(data, TensorDataset) else data.data if isinstance(data, Augmented) else data
    while isinstance(data, tuple | list | dict) and data:
        data = next(iter(data.values())) if isinstance(data, dict) else data[0]
    data = as_tensors(data)
    return data if isinstance(data, Tensor) else None


def _row_addresses(tensor: Tensor) -> Tensor:
    return tensor.data_ptr() + torch.arange(len(tensor)) * tensor.stride(0) * tensor.element_size()
