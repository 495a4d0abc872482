"""Datasets and DataLoaders as sources of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, SubsetRandomSampler

from calibayes.data.input_structure import rows
from calibayes.data.sources.batches import Batch, as_batch, choice, shuffled
from calibayes.distributed import ALONE, Processes
from calibayes.errors import DataError
from calibayes.randomness import generator_for, seed_globally

__all__ = ["DatasetSource", "LoaderSource", "examples_of"]


class DatasetSource:
    """A map-style Dataset of (inputs, target) examples."""

    def __init__(self, dataset: Dataset[Any], batch_size: int, collate: Callable[[list[Any]], Any], name: str) -> None:
        self.dataset, self.batch_size, self.collate, self.name = dataset, batch_size, collate, name
        self.size = _length(dataset, name)

    def steps(self) -> int:
        return -(-self.size // self.batch_size)

    def epoch(self, seed: int, epoch: int, skip: int = 0, *, processes: Processes = ALONE) -> Iterator[Batch]:
        batches = shuffled(self.size, self.steps(), seed, epoch)
        for step in range(skip, self.steps()):
            yield self._taken(batches[step], processes, seed, "data", epoch, step)

    def ordered(self, *, processes: Processes = ALONE) -> Iterator[Batch]:
        for start in range(0, self.size, self.batch_size):
            yield self._taken(torch.arange(start, min(start + self.batch_size, self.size)), processes, 0, "ordered", start)

    def draw(self, count: int, seed: int, *place: int | str, processes: Processes = ALONE) -> Batch:
        return self._taken(choice(self.size, count, seed, *place), processes, seed, "draw", *place)

    def _taken(self, index: Tensor, processes: Processes, seed: int, *place: int | str) -> Batch:
        """Draw examples; their random augmentation depends on the seed and the example's position in the batch."""
        own = processes.rows(len(index))
        examples = []
        for k in range(own.start, own.stop):
            seed_globally(seed, *place, k, everything=True)
            examples.append(self.dataset[int(index[k])])
        return as_batch(self.collate(examples), self.name)._replace(total=len(index))


class LoaderSource:
    """A DataLoader, reseeded for every epoch and batch so that any of them can be reached again."""

    def __init__(self, loader: DataLoader[Any], name: str) -> None:
        self.loader, self.name = loader, name
        self.examples = examples_of(loader)
        self.size = _length(self.examples, name)
        if len(loader) == 0:
            raise DataError(f"`{name}` has {self.size} examples but no batch: drop_last leaves none of {loader.batch_size}.")
        self.batch_size = loader.batch_size or 0

    def steps(self) -> int:
        return len(self.loader)

    def epoch(self, seed: int, epoch: int, skip: int = 0, *, processes: Processes = ALONE) -> Iterator[Batch]:
        self._check_whole(processes)
        self._reseed(seed, "data", epoch)
        if hasattr(self.loader.sampler, "set_epoch"):
            self.loader.sampler.set_epoch(epoch)
        return self._shared(islice(self._reseeded(seed, epoch), skip, None), processes)

    def ordered(self, *, processes: Processes = ALONE) -> Iterator[Batch]:
        self._check_whole(processes)
        if processes.size > 1:
            self._reseed(0, "ordered")  # a loader that shuffles must do so in the same way in all processes
        return self._shared((as_batch(batch, self.name) for batch in self.loader), processes)

    def draw(self, count: int, seed: int, *place: int | str, processes: Processes = ALONE) -> Batch:
        examples = DatasetSource(self.examples, count, self.loader.collate_fn, self.name)
        return examples.draw(count, seed, *place, processes=processes)

    def _check_whole(self, processes: Processes) -> None:
        """Raise if the loader itself splits the data between processes, which would split it twice."""
        samplers = (self.loader.sampler, getattr(self.loader.batch_sampler, "sampler", None), self.loader.batch_sampler)
        if processes.size > 1 and any(getattr(sampler, "num_replicas", 1) > 1 for sampler in samplers):
            raise DataError(
                f"The DataLoader of `{self.name}` has a sampler that gives each process other examples, but `fit` splits them "
                "itself. Use a DataLoader without a DistributedSampler."
            )

    def _reseed(self, seed: int, *place: int | str) -> None:
        seed_globally(seed, *place, everything=True)
        for holder in (self.loader, self.loader.sampler, self.loader.batch_sampler):
            generator = getattr(holder, "generator", None)
            if isinstance(generator, torch.Generator):
                generator.manual_seed(generator_for(torch.device("cpu"), seed, *place).initial_seed())

    def _shared(self, batches: Iterator[Batch], processes: Processes) -> Iterator[Batch]:
        """Yield one process's rows of batches that all of them read; the first shows whether they read the same."""
        for number, batch in enumerate(batches):
            if processes.size == 1:
                yield batch
                continue
            if number == 0 and (odd := processes.differ(batch.targets.tolist())):
                raise DataError(
                    f"The DataLoader of `{self.name}` gives processes {odd} other examples than process 0. It must give all of "
                    "them the same batches: give its sampler the same seed everywhere, or pass the Dataset."
                )
            own = processes.rows(batch.total)
            yield Batch(rows(batch.inputs, own), batch.targets[own], batch.total)

    def _reseeded(self, seed: int, epoch: int) -> Iterator[Batch]:
        batches = iter(self.loader)
        for step in range(len(self.loader)):
            seed_globally(seed, "data", epoch, step, everything=True)
            yield as_batch(next(batches), self.name)


def examples_of(loader: DataLoader[Any]) -> Dataset[Any]:
    """Return the examples of a DataLoader's epoch: with a SubsetRandomSampler only the chosen ones."""
    for sampler in (loader.sampler, getattr(loader.batch_sampler, "sampler", None)):
        if isinstance(sampler, SubsetRandomSampler):
            return Subset(loader.dataset, [int(index) for index in sampler.indices])
    return loader.dataset


def _length(dataset: Any, name: str) -> int:
    if isinstance(dataset, IterableDataset) or not isinstance(dataset, Sized):
        raise DataError(
            f"`{name}` has no length, but the weight of the KL term needs the number of examples. Use a Dataset with `__len__`."
        )
    if len(dataset) == 0:
        raise DataError(f"`{name}` has no examples.")
    return len(dataset)
