"""Inputs whose targets are a teacher's predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import torch
from torch import Tensor

from calibayes.data.sources.batches import Batch, Source
from calibayes.data.sources.tensors import TensorSource
from calibayes.distributed import ALONE, Processes

__all__ = ["TaughtBatches", "TaughtTensors"]


@final
class TaughtTensors(TensorSource):
    """Inputs in memory and targets ``[n, D]`` that were computed once."""

    def __init__(self, inputs: Any, targets: Tensor, batch_size: int, name: str) -> None:
        super().__init__(inputs, torch.zeros(len(targets), dtype=torch.int64), batch_size, name)
        self.targets = targets

    def source(self, batch_size: int, name: str) -> Source:
        return self


@final
class TaughtBatches:
    """Batches of inputs that may differ from epoch to epoch; the teacher gives the targets of each as it is read."""

    def __init__(self, inputs: Source, teach: Callable[[Any], Tensor]) -> None:
        self.inputs, self.teach, self.size = inputs, teach, inputs.size

    def source(self, batch_size: int, name: str) -> Source:
        return self

    def steps(self) -> int:
        return self.inputs.steps()

    def epoch(self, seed: int, epoch: int, skip: int = 0, *, processes: Processes = ALONE) -> Iterator[Batch]:
        return map(self._taught, self.inputs.epoch(seed, epoch, skip, processes=processes))

    def ordered(self, *, processes: Processes = ALONE) -> Iterator[Batch]:
        return map(self._taught, self.inputs.ordered(processes=processes))

    def draw(self, count: int, seed: int, *place: int | str, processes: Processes = ALONE) -> Batch:
        return self._taught(self.inputs.draw(count, seed, *place, processes=processes))

    def _taught(self, batch: Batch) -> Batch:
        return batch._replace(targets=self.teach(batch.inputs))
