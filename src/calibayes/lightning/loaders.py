"""Facts from a Trainer's dataloaders: how many examples there are, whose they are, and in which order they come."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

import torch
from lightning.pytorch.utilities import CombinedLoader
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SubsetRandomSampler, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler

from calibayes.data.sources import Batch, as_batch, examples_of
from calibayes.data.sources.datasets import DatasetSource
from calibayes.errors import DataError
from calibayes.randomness import generator_for
from calibayes.training.framework_run import TrainingData

__all__ = ["flat", "number_of_examples", "own_examples", "shuffle_by_epoch", "training_data"]

_RANDOM = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
_USUAL_BATCH = 128


def flat(loaders: Any) -> list[Any]:
    """The dataloaders of a Trainer, which may be one, or a list or dict of them, as a list."""
    found: list[Any] = CombinedLoader(loaders, "sequential").flattened
    return found


def number_of_examples(loaders: Any) -> int:
    """Return the number of examples in the data set behind the train dataloader, in all processes together."""
    found = flat(loaders)
    dataset = examples_of(found[0]) if isinstance(found[0], DataLoader) else getattr(found[0], "dataset", None)
    if len(found) > 1 or isinstance(dataset, IterableDataset) or not isinstance(dataset, Sized):
        what = f"there are {len(found)} train dataloaders" if len(found) > 1 else _described(found[0], dataset)
        raise DataError(
            f"The weight of the KL term needs the number of training examples, but {what}. "
            "Say how many there are: `CalibayesModule(..., dataset_size=50_000)`."
        )
    return len(dataset)


def _described(loader: Any, dataset: Any) -> str:
    if dataset is None:
        return f"the train dataloader, a {type(loader).__name__}, has no `dataset`"
    return f"the data set of the train dataloader, a {type(dataset).__name__}, has no length"


def own_examples(loader: Any) -> int | None:
    """Return how many examples of a dataloader are this process's own; ``None`` if all that it yields are.

    A DistributedSampler gives every process equally many, and some at the end for the second time if need be.
    """
    for sampler in _samplers(loader):
        if isinstance(sampler, DistributedSampler):
            return len(range(sampler.rank, len(sampler.dataset), sampler.num_replicas))  # type: ignore[arg-type]
    return None


def shuffle_by_epoch(loaders: Any, seed: int, epoch: int, rank: int) -> None:
    """Let the order in which dataloaders shuffle depend on seed and epoch alone, so that a resumed run has the same.

    Each gets a generator for the seeds of its workers, too: drawn from the global one, they would leave that in another state
    in a resumed run, which makes its first iterator at another time. Those are each process's own, so that no two change
    their examples alike.
    """
    for loader in flat(loaders):
        if isinstance(loader, DataLoader):
            loader.generator = generator_for(torch.device("cpu"), seed, "workers", epoch, rank)
        for sampler in _samplers(loader):
            if isinstance(sampler, _RANDOM):
                sampler.generator = generator_for(torch.device("cpu"), seed, "shuffle", epoch)


def training_data(loaders: Any, processes: int) -> TrainingData:
    """All the training data, to be read once more: from the data set where it has a length, else as the dataloader has them.

    Args:
        loaders: the train dataloader.
        processes: how many there are; each reads everything, in batches that are those of all of them together.
    """
    found = flat(loaders)
    loader = found[0]
    if len(found) == 1 and isinstance(loader, DataLoader) and loader.batch_sampler is not None:
        examples = examples_of(loader)
        if not isinstance(examples, IterableDataset) and isinstance(examples, Sized):
            size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None) or _USUAL_BATCH
            return DatasetSource(examples, size * processes, loader.collate_fn, "train")
    if processes > 1:
        raise DataError(
            f"The posterior needs all training examples once more, but each of {processes} processes has a part of them. Use a "
            "train dataloader of a Dataset with `__len__`, which makes batches of its examples."
        )
    return _LoaderOrder(loaders)


class _LoaderOrder:
    """Batches as a dataloader has them."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def epoch(self, seed: int, epoch: int) -> Iterator[Batch]:
        return self.ordered()

    def ordered(self) -> Iterator[Batch]:
        return (as_batch(batch, "train") for batch in self._loader)


def _samplers(loader: Any) -> Iterator[Any]:
    yield getattr(loader, "sampler", None)
    yield getattr(getattr(loader, "batch_sampler", None), "sampler", None)
