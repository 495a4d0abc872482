"""The user's data as batches of (inputs, targets): tensors, a Dataset or a DataLoader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from calibayes.data.sources.batches import Batch, HasSource, Source, as_batch, labelled
from calibayes.data.sources.datasets import DatasetSource, LoaderSource, examples_of
from calibayes.data.sources.tensors import TensorSource
from calibayes.errors import DataError
from calibayes.wording import type_name

__all__ = ["Batch", "HasSource", "Source", "TensorSource", "as_batch", "as_source", "examples_of", "labelled"]


def as_source(data: Any, batch_size: int, name: str) -> Source:
    """Return ``data`` as a `Source`; ``name`` is its name in error messages."""
    if isinstance(data, DataLoader):
        return LoaderSource(data, name)
    if isinstance(data, Dataset):
        return DatasetSource(data, batch_size, default_collate, name)
    if isinstance(data, HasSource):
        return data.source(batch_size, name)
    if isinstance(data, Sequence) and len(data) in (2, 3) and all(isinstance(part, Tensor | np.ndarray) for part in data[1:]):
        return TensorSource(data[0], data[1], batch_size, name, *data[2:])
    raise DataError(
        f"Expected `{name}` to be a pair (x, y) of tensors, or (x, y, weights), a torch Dataset or a DataLoader, but got "
        f"{type_name(data)}. Several inputs: pass ((x1, x2), y) or ({{'a': x1, 'b': x2}}, y)."
    )
