"""The examples of a Trainer's dataloaders: their number, each process's share of them, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

import torch
from lightning.pytorch.utilities import CombinedLoader
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SubsetRandomSampler, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler

from calibayes.data.sources import examples_of
from calibayes.data.sources.datasets import DatasetSource
from calibayes.errors import DataError
from calibayes.randomness import generator_for
from calibayes.training.norm_statistics import TrainingData
from calibayes.training.training_hooks import LoaderData

__all__ = ["flat", "number_of_examples", "own_examples", "shuffle_by_epoch", "training_data"]

_RANDOM = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
_USUAL_BATCH = 128


def flat(loaders: Any) -> list[Any]:
    """The dataloaders of a Trainer, which may be one, or a list or dict of them, as a list."""
    return list(CombinedLoader(loaders, "sequential").flattened)


def number_of_examples(loaders: Any) -> int:
    """Return the number of examples in the data set behind the train dataloader, in all processes together."""
    loader, *others = flat(loaders)
    dataset = examples_of(loader) if isinstance(loader, DataLoader) else getattr(loader, "dataset", None)
    if not others and not isinstance(dataset, IterableDataset) and isinstance(dataset, Sized):
        return len(dataset)
    if others:
        reason = f"there are {len(others) + 1} train dataloaders"
    elif dataset is None:
        reason = f"the train dataloader, a {type(loader).__name__}, has no `dataset`"
    else:
        reason = f"the data set of the train dataloader, a {type(dataset).__name__}, has no length"
    raise DataError(
        f"The weight of the KL term needs the number of training examples, but {reason}. "
        "Pass their number: `CalibayesModule(..., dataset_size=50_000)`."
    )


def own_examples(loader: Any) -> int | None:
    """Return how many examples of a dataloader belong to this process; ``None`` if all that it yields do.

    A DistributedSampler gives every process equally many, and repeats some at the end if need be.
    """
    for sampler in _samplers(loader):
        if isinstance(sampler, DistributedSampler):
            return len(range(sampler.rank, len(sampler.dataset), sampler.num_replicas))  # type: ignore[arg-type]
    return None


def shuffle_by_epoch(loaders: Any, seed: int, epoch: int, rank: int) -> None:
    """Let the order in which dataloaders shuffle depend on seed and epoch alone, so that a resumed run has the same.

    Each also gets a generator for the seeds of its workers, different in every process. Seeds drawn from the global generator
    would change its state in a resumed run, which makes its first iterator at another time.
    """
    for loader in flat(loaders):
        if isinstance(loader, DataLoader):
            loader.generator = generator_for(torch.device("cpu"), seed, "workers", epoch, rank)
        for sampler in _samplers(loader):
            if isinstance(sampler, _RANDOM):
                sampler.generator = generator_for(torch.device("cpu"), seed, "shuffle", epoch)


def training_data(loaders: Any, processes: int) -> TrainingData:
    """All the training data, to be read once more: from the data set where it has a length, else as the dataloader has them.

    Each of ``processes`` reads everything, in the batches of all of them together.
    """
    loader, *others = flat(loaders)
    if not others and isinstance(loader, DataLoader) and loader.batch_sampler is not None:
        examples = examples_of(loader)
        if not isinstance(examples, IterableDataset) and isinstance(examples, Sized):
            size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None) or _USUAL_BATCH
            return DatasetSource(examples, size * processes, loader.collate_fn, "train")
    if processes > 1:
        raise DataError(
            f"The posterior needs all training examples once more, but each of {processes} processes has a part of them. Use a "
            "train dataloader of a Dataset with `__len__`, which makes batches of its examples."
        )
    return LoaderData(loaders, "train")


def _samplers(loader: Any) -> Iterator[Any]:
    yield getattr(loader, "sampler", None)
    yield getattr(getattr(loader, "batch_sampler", None), "sampler", None)
