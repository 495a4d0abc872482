"""Inputs to predict as blocks of batches: tensors, a Dataset or a DataLoader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any

from torch.utils.data import DataLoader, Dataset, RandomSampler, Subset, SubsetRandomSampler, WeightedRandomSampler

from calibayes.data.input_structure import as_tensors, batch_length, rows
from calibayes.distributed import ALONE, Processes
from calibayes.errors import DataError

__all__ = ["input_blocks", "inputs_of"]


def input_blocks(x: Any, batch_size: int, processes: Processes, totals: list[int]) -> Iterator[Sequence[Any]]:
    """Yield inputs in memory as one block of batches; those that have to be read as one block per batch, read once.

    A process gets its own rows of each group of examples; their sizes are appended to ``totals``.
    """
    if isinstance(x, DataLoader):
        if _is_shuffled(x):
            raise DataError("Predictions of a shuffled DataLoader cannot be matched to its examples. Use `shuffle=False`.")
        for batch in x:
            inputs = inputs_of(batch)
            if processes.size > 1:
                totals.append(batch_length(inputs, "x"))
                inputs = rows(inputs, processes.rows(totals[-1]))
            yield [inputs]
    elif isinstance(x, Dataset):
        if processes.size > 1:
            if not isinstance(x, Sized):
                raise DataError("Predictions of a Dataset without a length cannot be split by process. Pass `group=None`.")
            totals.append(len(x))
            own = processes.rows(totals[-1])
            x = Subset(x, range(own.start, own.stop))
        yield from input_blocks(DataLoader(x, batch_size=batch_size), batch_size, ALONE, [])
    else:
        inputs = as_tensors(x)
        totals.append(batch_length(inputs, "x"))
        own = processes.rows(totals[-1])
        inputs = rows(inputs, own) if processes.size > 1 else inputs
        count = own.stop - own.start if totals[-1] else 0
        yield [rows(inputs, slice(start, start + batch_size)) for start in range(0, count, batch_size)]


def _is_shuffled(loader: DataLoader[Any]) -> bool:
    samplers = (loader.sampler, getattr(loader.batch_sampler, "sampler", None))
    random = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
    return any(isinstance(sampler, random) or getattr(sampler, "shuffle", False) for sampler in samplers)


def inputs_of(batch: Any) -> Any:
    """Return the inputs of what a loader yields: all but the last of a sequence, all but ``labels`` of a dict."""
    if isinstance(batch, Mapping):
        return {key: value for key, value in batch.items() if key != "labels"}
    if isinstance(batch, Sequence) and len(batch) >= 2:
        return batch[0] if len(batch) == 2 else tuple(batch[:-1])
    return batch[0] if isinstance(batch, Sequence) else batch
