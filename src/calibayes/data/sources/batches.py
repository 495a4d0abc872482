"""Batches of examples: their sources, their order, and the checks of their labels and weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from calibayes.data.input_structure import as_tensors
from calibayes.distributed import ALONE, Processes
from calibayes.errors import DataError
from calibayes.numpy_arrays import from_numpy
from calibayes.randomness import generator_for
from calibayes.wording import type_name

__all__ = ["Batch", "HasSource", "Source", "as_batch", "choice", "labelled", "labels", "shuffled", "weights"]


class Batch(NamedTuple):
    """Examples that are run through the network together.

    Attributes:
        inputs: a tensor, or a tuple or dict of tensors.
        targets: class indices.
        total: the number of examples of all processes in this batch; the rows here belong to one process.
        weights: of the examples, one on average over all the data; ``None`` if all count the same.
    """

    inputs: Any
    targets: Tensor
    total: int
    weights: Tensor | None = None


class Source(Protocol):
    """Data to train on: ``size`` examples, in an order that depends on seed and epoch alone.

    Batches are those of all ``processes`` together; each process gets its own rows, and reads only those where possible.
    """

    size: int

    def steps(self) -> int:
        """Return the number of batches in an epoch."""
        ...

    def epoch(self, seed: int, epoch: int, skip: int = 0, *, processes: Processes = ALONE) -> Iterator[Batch]:
        """Yield the batches of an epoch, without the first ``skip``."""
        ...

    def ordered(self, *, processes: Processes = ALONE) -> Iterator[Batch]:
        """Yield all batches in the data's own order."""
        ...

    def draw(self, count: int, seed: int, *place: int | str, processes: Processes = ALONE) -> Batch:
        """Return ``count`` examples at random (with repetition only if there are too few)."""
        ...


@runtime_checkable
class HasSource(Protocol):
    """Data that makes its own batches."""

    def source(self, batch_size: int, name: str) -> Source:
        """Return a `Source` of the data; ``name`` is its name in error messages."""
        ...


def shuffled(size: int, steps: int, seed: int, epoch: int) -> tuple[Tensor, ...]:
    """Return the batches of an epoch, which differ in size by at most one.

    A small batch left over at the end would move the weights as far as a large one, in a random direction, just before
    the validation after the epoch.
    """
    return _permutation(size, seed, "shuffle", epoch).tensor_split(steps)


def choice(size: int, count: int, seed: int, *place: int | str) -> Tensor:
    """Return ``count`` indices at random, with repetition only if there are too few."""
    if count <= size:
        return _permutation(size, seed, *place)[:count]
    return torch.randint(size, (count,), generator=generator_for(torch.device("cpu"), seed, *place))


def _permutation(size: int, seed: int, *place: int | str) -> Tensor:
    return torch.randperm(size, generator=generator_for(torch.device("cpu"), seed, *place))


def as_batch(batch: Any, name: str) -> Batch:
    """Return what a loader yields as a batch: the last of a sequence, or the ``labels`` of a dict, are the targets."""
    if isinstance(batch, Mapping) and "labels" in batch:
        inputs: Any = {key: as_tensors(value) for key, value in batch.items() if key != "labels"}
        return labelled(inputs, batch["labels"], name)
    if isinstance(batch, Sequence) and len(batch) >= 2 and isinstance(batch[-1], Tensor | np.ndarray):
        inputs = as_tensors(batch[0]) if len(batch) == 2 else tuple(as_tensors(part) for part in batch[:-1])
        return labelled(inputs, batch[-1], name)
    raise DataError(
        f"Expected every batch of `{name}` to be (inputs, targets) or a dict with 'labels', but got {type_name(batch)}."
    )


def labelled(inputs: Any, targets: Any, name: str) -> Batch:
    """Return a batch of inputs with these labels, one class index for each example."""
    targets = labels(targets, name)
    if targets.dim() != 1:
        raise DataError(
            f"Every batch of `{name}` must have one class index per example, shape [n], but its targets have shape "
            f"{list(targets.shape)}. One-hot labels: pass `y.argmax(-1)`."
        )
    return Batch(inputs, targets, len(targets))


def labels(targets: Any, name: str) -> Tensor:
    """Return class indices as int64; anything else is rejected rather than truncated."""
    wanted = f"The targets of `{name}` must be class indices of an integer type"
    if isinstance(targets, np.ndarray):
        if targets.dtype.kind not in "fiubc":
            hint = "Names of classes: pass `numpy.unique(y, return_inverse=True)[1]`."
            raise DataError(f"{wanted}, but have dtype {targets.dtype}. {hint}")
        targets = from_numpy(targets)
    if not isinstance(targets, Tensor):
        raise DataError(f"The targets of `{name}` must be a tensor of class indices, but are {type_name(targets)}.")
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool:
        raise DataError(f"{wanted}, but are {targets.dtype}.")
    return targets.long()


def weights(weights: Any, size: int, name: str) -> Tensor:
    """Return the weights of examples as float64 on the CPU, or raise an error that names them."""
    weights = from_numpy(weights) if isinstance(weights, np.ndarray) else weights
    if weights.shape != (size,):
        shape = list(weights.shape)
        raise DataError(f"`{name}` has {size} examples, so its weights must have shape [{size}], but have {shape}.")
    values: Tensor = weights.detach().cpu().double()
    wrong = ~(values.isfinite() & (values >= 0))
    if bool(wrong.any()):
        place = int(wrong.nonzero()[0])
        value = float(values[place])
        raise DataError(f"The weights of `{name}` must be finite and not negative, but number {place} is {value}.")
    if not bool(values.any()):
        raise DataError(f"The weights of `{name}` are all zero: no example counts.")
    return values
