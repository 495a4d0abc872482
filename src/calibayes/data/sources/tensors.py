"""Data in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from calibayes.data.input_structure import as_tensors, batch_length, rows
from calibayes.data.sources import batches
from calibayes.data.sources.batches import Batch, choice, shuffled
from calibayes.distributed import ALONE, Processes
from calibayes.errors import DataError

__all__ = ["TensorSource"]


class TensorSource:
    """Inputs (a tensor, a tuple or a dict of tensors) and targets in memory.

    With weights, examples of weight zero are left out.
    """

    def __init__(self, inputs: Any, targets: Any, batch_size: int, name: str, weights: Any = None) -> None:
        self.inputs = as_tensors(inputs)
        self.targets = batches.labels(targets, name)
        self.batch_size = batch_size
        self.size = batch_length(self.inputs, name)
        if self.size == 0:
            raise DataError(f"`{name}` has no examples.")
        if self.targets.dim() != 1 or len(self.targets) != self.size:
            raise DataError(
                f"`{name}` has {self.size} inputs, so its targets must be one class index each, shape [{self.size}], "
                f"but they have shape {list(self.targets.shape)}."
            )
        self.weights = None if weights is None else batches.weights(weights, self.size, name)
        if self.weights is not None:
            counts = self.weights > 0
            self.inputs, self.targets = rows(self.inputs, counts), self.targets[counts.to(self.targets.device)]
            self.weights = self.weights[counts]
            self.size = len(self.weights)
            self.weights /= self.weights.mean()

    def steps(self) -> int:
        return -(-self.size // self.batch_size)

    def epoch(self, seed: int, epoch: int, skip: int = 0, *, processes: Processes = ALONE) -> Iterator[Batch]:
        return (self.take(index, processes) for index in shuffled(self.size, self.steps(), seed, epoch)[skip:])

    def ordered(self, *, processes: Processes = ALONE) -> Iterator[Batch]:
        for start in range(0, self.size, self.batch_size):
            stop = min(start + self.batch_size, self.size)
            own = processes.rows(stop - start)
            index = slice(start + own.start, start + own.stop)
            weights = None if self.weights is None else self.weights[index]
            yield Batch(rows(self.inputs, index), self.targets[index], stop - start, weights)

    def draw(self, count: int, seed: int, *place: int | str, processes: Processes = ALONE) -> Batch:
        return self.take(choice(self.size, count, seed, *place), processes)

    def take(self, index: Tensor, processes: Processes = ALONE) -> Batch:
        own = index[processes.rows(len(index))]
        weights = None if self.weights is None else self.weights[own]
        return Batch(rows(self.inputs, own), self.targets[own.to(self.targets.device)], len(index), weights)
