"""Whatever a user passes as data, as batches of (inputs, targets): tensors, a Dataset or a DataLoader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from calibayes.arrays import from_numpy
from calibayes.data.structure import as_tensors, batch_length, rows
from calibayes.distributed import ALONE, Processes
from calibayes.errors import DataError
from calibayes.randomness import generator_for, seed_globally

__all__ = ["Batch", "DatasetSource", "HasSource", "LoaderSource", "Source", "TensorSource", "as_batch", "as_source"]


class Batch(NamedTuple):
    """Examples that are run through together.

    Attributes:
        inputs: a tensor, or a tuple or dict of tensors.
        targets: class indices.
        total: how many examples all processes together have in this batch; these here are one process's.
        weights: how much each example counts; one on average over all the data. ``None`` if all count alike.
    """

    inputs: Any
    targets: Tensor
    total: int
    weights: Tensor | None = None


class Source(Protocol):
    """Data that training can run through: ``size`` examples, in an order that depends on seed and epoch alone.

    Batches are those of all ``processes`` together; each gets its own rows, and where it can be, only those are read.
    """

    size: int

    def steps(self) -> int:
        """How many batches an epoch has."""
        ...

    def epoch(self, seed: int, epoch: int, skip: int = 0, *, processes: Processes = ALONE) -> Iterator[Batch]:
        """The batches of an epoch, without the first ``skip``."""
        ...

    def ordered(self, *, processes: Processes = ALONE) -> Iterator[Batch]:
        """All batches in the data's own order."""
        ...

    def draw(self, count: int, seed: int, *place: int | str, processes: Processes = ALONE) -> Batch:
        """``count`` examples at random (with repetition only where there are not enough)."""
        ...


@runtime_checkable
class HasSource(Protocol):
    """Data that knows best how to make batches of itself."""

    def source(self, batch_size: int, name: str) -> Source:
        """Itself as a `Source`; ``name`` is what error messages call it."""
        ...


def as_source(data: Any, batch_size: int, name: str) -> Source:
    """``data`` as a `Source`; ``name`` is what error messages call it."""
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
        f"{_described(data)}. Several inputs: pass ((x1, x2), y) or ({{'a': x1, 'b': x2}}, y)."
    )


class TensorSource:
    """Inputs (a tensor, a tuple or a dict of tensors) and targets that are in memory.

    With weights, examples of weight zero are left out: they are no examples.
    """

    def __init__(self, inputs: Any, targets: Any, batch_size: int, name: str, weights: Any = None) -> None:
        self.inputs = as_tensors(inputs)
        self.targets = _labels(targets, name)
        self.batch_size = batch_size
        self.size = batch_length(self.inputs, name)
        if self.size == 0:
            raise DataError(f"`{name}` has no examples.")
        if self.targets.dim() != 1 or len(self.targets) != self.size:
            raise DataError(
                f"`{name}` has {self.size} inputs, so its targets must be one class index each, shape [{self.size}], "
                f"but they have shape {list(self.targets.shape)}."
            )
        self.weights = None if weights is None else _weights(weights, self.size, name)
        if self.weights is not None:
            counts = self.weights > 0
            self.inputs, self.targets = rows(self.inputs, counts), self.targets[counts.to(self.targets.device)]
            self.weights = self.weights[counts]
            self.size = len(self.weights)
            self.weights /= self.weights.mean()

    def steps(self) -> int:
        return -(-self.size // self.batch_size)

    def epoch(self, seed: int, epoch: int, skip: int = 0, *, processes: Processes = ALONE) -> Iterator[Batch]:
        return (self.take(index, processes) for index in self.shuffled(seed, epoch, skip))

    def ordered(self, *, processes: Processes = ALONE) -> Iterator[Batch]:
        for start in range(0, self.size, self.batch_size):
            stop = min(start + self.batch_size, self.size)
            own = processes.rows(stop - start)
            index = slice(start + own.start, start + own.stop)
            weights = None if self.weights is None else self.weights[index]
            yield Batch(rows(self.inputs, index), self.targets[index], stop - start, weights)

    def draw(self, count: int, seed: int, *place: int | str, processes: Processes = ALONE) -> Batch:
        return self.take(self.chosen(count, seed, *place), processes)

    def shuffled(self, seed: int, epoch: int, skip: int) -> Iterator[Tensor]:
        return iter(_shuffled(self.size, self.steps(), seed, epoch)[skip:])

    def chosen(self, count: int, seed: int, *place: int | str) -> Tensor:
        return _choice(self.size, count, seed, *place)

    def take(self, index: Tensor, processes: Processes = ALONE) -> Batch:
        own = index[processes.rows(len(index))]
        weights = None if self.weights is None else self.weights[own]
        return Batch(rows(self.inputs, own), self.targets[own.to(self.targets.device)], len(index), weights)


class DatasetSource:
    """A map-style Dataset of (inputs, target) examples."""

    def __init__(self, dataset: Dataset[Any], batch_size: int, collate: Callable[[list[Any]], Any], name: str) -> None:
        self.dataset, self.batch_size, self.collate, self.name = dataset, batch_size, collate, name
        self.size = _length(dataset, name)

    def steps(self) -> int:
        return -(-self.size // self.batch_size)

    def epoch(self, seed: int, epoch: int, skip: int = 0, *, processes: Processes = ALONE) -> Iterator[Batch]:
        batches = _shuffled(self.size, self.steps(), seed, epoch)
        for step in range(skip, self.steps()):
            yield self._taken(batches[step], processes, seed, "data", epoch, step)

    def ordered(self, *, processes: Processes = ALONE) -> Iterator[Batch]:
        for start in range(0, self.size, self.batch_size):
            yield self._taken(torch.arange(start, min(start + self.batch_size, self.size)), processes, 0, "ordered", start)

    def draw(self, count: int, seed: int, *place: int | str, processes: Processes = ALONE) -> Batch:
        return self._taken(_choice(self.size, count, seed, *place), processes, seed, "draw", *place)

    def _taken(self, index: Tensor, processes: Processes, seed: int, *place: int | str) -> Batch:
        """What the Dataset makes of an example at random depends on the seed and the example's place in the batch."""
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
        self.size = _length(loader.dataset, name)
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
            self._reseed(0, "ordered")  # a loader that shuffles must do so alike in all processes
        return self._shared((as_batch(batch, self.name) for batch in self.loader), processes)

    def draw(self, count: int, seed: int, *place: int | str, processes: Processes = ALONE) -> Batch:
        examples = DatasetSource(self.loader.dataset, count, self.loader.collate_fn, self.name)
        return examples.draw(count, seed, *place, processes=processes)

    def _check_whole(self, processes: Processes) -> None:
        """Raise if the loader itself shares the data out, which would leave a process a share of a share."""
        samplers = (self.loader.sampler, getattr(self.loader.batch_sampler, "sampler", None), self.loader.batch_sampler)
        if processes.size > 1 and any(getattr(sampler, "num_replicas", 1) > 1 for sampler in samplers):
            raise DataError(
                f"The DataLoader of `{self.name}` has a sampler that gives each process other examples, but `fit` shares them "
                "out itself. Use a DataLoader without a DistributedSampler."
            )

    def _reseed(self, seed: int, *place: int | str) -> None:
        seed_globally(seed, *place, everything=True)
        for holder in (self.loader, self.loader.sampler, self.loader.batch_sampler):
            generator = getattr(holder, "generator", None)
            if isinstance(generator, torch.Generator):
                generator.manual_seed(generator_for(torch.device("cpu"), seed, *place).initial_seed())

    def _shared(self, batches: Iterator[Batch], processes: Processes) -> Iterator[Batch]:
        """One process's rows of batches that all of them read; the first tells whether they read the same."""
        for number, batch in enumerate(batches):
            if processes.size == 1:
                yield batch
                continue
            if number == 0 and (odd := processes.differ(batch.targets.tolist())):
                raise DataError(
                    f"The DataLoader of `{self.name}` gives processes {odd} other examples than process 0. It must give all of "
                    "them the same batches: seed its sampler alike, or pass the Dataset."
                )
            own = processes.rows(batch.total)
            yield Batch(rows(batch.inputs, own), batch.targets[own], batch.total)

    def _reseeded(self, seed: int, epoch: int) -> Iterator[Batch]:
        batches = iter(self.loader)
        for step in range(len(self.loader)):
            seed_globally(seed, "data", epoch, step, everything=True)
            yield as_batch(next(batches), self.name)


def as_batch(batch: Any, name: str) -> Batch:
    """(inputs, targets) of what a loader yields: the last of a sequence, or the ``labels`` of a dict, are the targets."""
    if isinstance(batch, Mapping) and "labels" in batch:
        inputs: Any = {key: as_tensors(value) for key, value in batch.items() if key != "labels"}
        return _matched(inputs, _labels(batch["labels"], name), name)
    if isinstance(batch, Sequence) and len(batch) >= 2 and isinstance(batch[-1], Tensor | np.ndarray):
        inputs = as_tensors(batch[0]) if len(batch) == 2 else tuple(as_tensors(part) for part in batch[:-1])
        return _matched(inputs, _labels(batch[-1], name), name)
    raise DataError(
        f"Expected every batch of `{name}` to be (inputs, targets) or a dict with 'labels', but got {_described(batch)}."
    )


def _labels(targets: Any, name: str) -> Tensor:
    """Class indices as int64; anything else is refused rather than truncated."""
    if isinstance(targets, np.ndarray):
        if targets.dtype.kind not in "fiubc":
            raise DataError(
                f"The targets of `{name}` must be class indices of an integer type, but have dtype {targets.dtype}. "
                "Names of classes: pass `numpy.unique(y, return_inverse=True)[1]`."
            )
        targets = from_numpy(targets)
    if not isinstance(targets, Tensor):
        raise DataError(f"The targets of `{name}` must be a tensor of class indices, but are {_described(targets)}.")
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool:
        raise DataError(f"The targets of `{name}` must be class indices of an integer type, but are {targets.dtype}.")
    return targets.long()


def _weights(weights: Any, size: int, name: str) -> Tensor:
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


def _matched(inputs: Any, targets: Tensor, name: str) -> Batch:
    if targets.dim() != 1:
        raise DataError(
            f"Every batch of `{name}` must have one class index per example, shape [n], but its targets have shape "
            f"{list(targets.shape)}. One-hot labels: pass `y.argmax(-1)`."
        )
    return Batch(inputs, targets, len(targets))


def _length(dataset: Any, name: str) -> int:
    if isinstance(dataset, IterableDataset) or not isinstance(dataset, Sized):
        raise DataError(
            f"`{name}` has no length, but the weight of the KL term needs the number of examples. Use a Dataset with `__len__`."
        )
    if len(dataset) == 0:
        raise DataError(f"`{name}` has no examples.")
    return len(dataset)


def _shuffled(size: int, steps: int, seed: int, epoch: int) -> tuple[Tensor, ...]:
    """The batches of an epoch, which differ in size by at most one.

    A small batch left over at the end would move the weights as far as a large one, in a direction of chance, and what is
    measured after the epoch would be measured right after that.
    """
    return _permutation(size, seed, "shuffle", epoch).tensor_split(steps)


def _permutation(size: int, seed: int, *place: int | str) -> Tensor:
    return torch.randperm(size, generator=generator_for(torch.device("cpu"), seed, *place))


def _choice(size: int, count: int, seed: int, *place: int | str) -> Tensor:
    if count <= size:
        return _permutation(size, seed, *place)[:count]
    return torch.randint(size, (count,), generator=generator_for(torch.device("cpu"), seed, *place))


def _described(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"a {type(value).__name__} of {[type(part).__name__ for part in value[:4]]}"
    return f"a {type(value).__name__}"
