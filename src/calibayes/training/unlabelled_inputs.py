"""Inputs without labels, as data that training can draw from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from calibayes.data.input_structure import as_tensors, batch_length
from calibayes.data.sources import Source, TensorSource
from calibayes.data.sources.datasets import DatasetSource, examples_of
from calibayes.data.sources.input_blocks import inputs_of
from calibayes.errors import DataError

__all__ = ["unlabelled_source"]


def unlabelled_source(data: Any, batch_size: int, name: str) -> Source:
    """``data`` as a `Source` with zeros for labels; ``name`` is what error messages call it.

    Args:
        data: ``(x,)`` or ``x`` with tensors, arrays, or a dict of them; a Dataset or DataLoader, whose labels are ignored.
        batch_size: of its batches.
        name: for messages.
    """
    if isinstance(data, DataLoader):
        return DatasetSource(examples_of(data), batch_size, _without_labels(data.collate_fn), name)
    if isinstance(data, Dataset):
        return DatasetSource(data, batch_size, _without_labels(default_collate), name)
    inputs = data[0] if isinstance(data, Sequence) and len(data) == 1 else data
    # A longer sequence would be (x, y): nobody's labels may pass for a second input.
    if not isinstance(inputs, Tensor | np.ndarray | Mapping) and inputs is data:
        kind = f"a {type(data).__name__} of {len(data)}" if isinstance(data, Sequence) else f"a {type(data).__name__}"
        raise DataError(
            f"Expected `{name}` to be inputs without labels, (x,) with a tensor or array, or a torch Dataset, but got {kind}. "
            "Several inputs: pass ((x1, x2),)."
        )
    inputs = as_tensors(inputs)
    return TensorSource(inputs, torch.zeros(batch_length(inputs, name), dtype=torch.int64), batch_size, name)


def _without_labels(collate: Callable[[list[Any]], Any]) -> Callable[[list[Any]], tuple[Any, Tensor]]:
    """The same collation, of inputs and zeros for labels."""
    return lambda examples: (inputs_of(collate(examples)), torch.zeros(len(examples), dtype=torch.int64))
