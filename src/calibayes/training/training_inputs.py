"""Inputs of a training: without labels as a source, and batches on the device to train on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from calibayes.data.input_structure import as_tensors, batch_length, to_device
from calibayes.data.sources import Batch, Source, TensorSource, examples_of
from calibayes.data.sources.datasets import DatasetSource
from calibayes.data.sources.input_blocks import inputs_of
from calibayes.device_precision import widest_float
from calibayes.distributed import ALONE, Processes
from calibayes.distributed.processes import local_gpu
from calibayes.errors import DataError, InvalidArgumentError

__all__ = ["chosen_device", "on_device", "unlabelled_inputs", "unlabelled_source"]


def chosen_device(device: str | torch.device | None, processes: Processes = ALONE) -> torch.device:
    """The device asked for, or the fastest one; each of several processes has its own GPU."""
    if device is not None:
        try:
            return torch.empty(0, device=device).device
        except (RuntimeError, AssertionError, TypeError) as error:
            raise InvalidArgumentError(
                f"Expected `device` to be available on this machine, but got {device!r}: {error}"
            ) from error
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device() if processes.size == 1 else local_gpu())
    return torch.device("mps" if torch.backends.mps.is_available() and processes.size == 1 else "cpu")


def on_device(batch: Batch, device: torch.device) -> Batch:
    """The same batch on a device."""
    weights = None if batch.weights is None else batch.weights.to(device, widest_float(device))
    return Batch(to_device(batch.inputs, device), batch.targets.to(device), batch.total, weights)


def unlabelled_source(data: Any, batch_size: int, name: str) -> Source:
    """``data`` as a `Source` with zeros for labels; ``name`` is what error messages call it.

    ``data`` is ``(x,)`` or ``x`` with tensors, arrays, or a dict of them; or a Dataset or DataLoader, whose labels are ignored.
    """
    if isinstance(data, DataLoader):
        return DatasetSource(examples_of(data), batch_size, _without_labels(data.collate_fn), name)
    if isinstance(data, Dataset):
        return DatasetSource(data, batch_size, _without_labels(default_collate), name)
    inputs = unlabelled_inputs(data, name)
    return TensorSource(inputs, torch.zeros(batch_length(inputs, name), dtype=torch.int64), batch_size, name)


def unlabelled_inputs(data: Any, name: str) -> Any:
    """The inputs in memory of ``data``, which is ``(x,)`` or ``x``, as tensors; ``name`` is what error messages call it."""
    inputs = data[0] if isinstance(data, Sequence) and len(data) == 1 else data
    # A longer sequence would be (x, y): labels must not pass for a second input.
    if not isinstance(inputs, Tensor | np.ndarray | Mapping) and inputs is data:
        kind = f"a {type(data).__name__} of {len(data)}" if isinstance(data, Sequence) else f"a {type(data).__name__}"
        raise DataError(
            f"Expected `{name}` to be inputs without labels, (x,) with a tensor or array, or a torch Dataset, but got {kind}. "
            "Several inputs: pass ((x1, x2),)."
        )
    return as_tensors(inputs)


def _without_labels(collate: Callable[[list[Any]], Any]) -> Callable[[list[Any]], tuple[Any, Tensor]]:
    """The same collation, with zeros for labels."""
    return lambda examples: (inputs_of(collate(examples)), torch.zeros(len(examples), dtype=torch.int64))
