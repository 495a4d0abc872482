"""Batches, labels and weights as they were given, made tensors or refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calibayes.data.input_structure import as_tensors
from calibayes.data.sources.batch_source import Batch
from calibayes.errors import DataError
from calibayes.numpy_arrays import from_numpy
from calibayes.wording import type_name

__all__ = ["as_batch", "labelled", "labels", "weights"]


def as_batch(batch: Any, name: str) -> Batch:
    """(inputs, targets) of what a loader yields: the last of a sequence, or the ``labels`` of a dict, are the targets."""
    if isinstance(batch, Mapping) and "labels" in batch:
        inputs: Any = {key: as_tensors(value) for key, value in batch.items() if key != "labels"}
        return labelled(inputs, batch["labels"], name)
    if isinstance(batch, Sequence) and len(batch) >= 2 and isinstance(batch[-1], Tensor | np.ndarray):
        inputs = as_tensors(batch[0]) if len(batch) == 2 else tuple(as_tensors(part) for part in batch[:-1])
        return labelled(inputs, batch[-1], name)
    raise DataError(
        f"Expected every batch of `{name}` to be (inputs, targets) or a dict with 'labels', but got {type_name(batch)}."
    )


def labels(targets: Any, name: str) -> Tensor:
    """Class indices as int64; anything else is refused rather than truncated."""
    if isinstance(targets, np.ndarray):
        if targets.dtype.kind not in "fiubc":
            raise DataError(
                f"The targets of `{name}` must be class indices of an integer type, but have dtype {targets.dtype}. "
                "Names of classes: pass `numpy.unique(y, return_inverse=True)[1]`."
            )
        targets = from_numpy(targets)
    if not isinstance(targets, Tensor):
        raise DataError(f"The targets of `{name}` must be a tensor of class indices, but are {type_name(targets)}.")
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool:
        raise DataError(f"The targets of `{name}` must be class indices of an integer type, but are {targets.dtype}.")
    return targets.long()


def weights(weights: Any, size: int, name: str) -> Tensor:
    """Weights of examples as float64 on the CPU, or a named error."""
    found = from_numpy(weights) if isinstance(weights, np.ndarray) else weights
    if found.shape != (size,):
        raise DataError(f"`{name}` has {size} examples, so its weights must have shape [{size}], but have {list(found.shape)}.")
    found = found.detach().cpu().double()
    wrong = ~(found.isfinite() & (found >= 0))
    if bool(wrong.any()):
        place = int(wrong.nonzero()[0])
        raise DataError(
            f"The weights of `{name}` must be finite and not negative, but number {place} is {float(found[place])}."
        )
    if not bool(found.any()):
        raise DataError(f"The weights of `{name}` are all zero: no example counts.")
    return found


def labelled(inputs: Any, targets: Any, name: str) -> Batch:
    """A batch of inputs with these labels, one class index for each example."""
    targets = labels(targets, name)
    if targets.dim() != 1:
        raise DataError(
            f"Every batch of `{name}` must have one class index per example, shape [n], but its targets have shape "
            f"{list(targets.shape)}. One-hot labels: pass `y.argmax(-1)`."
        )
    return Batch(inputs, targets, len(targets))
