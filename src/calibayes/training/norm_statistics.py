"""Running statistics of batch norms for weights that no step was taken at, such as an average."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase

from calibayes.data.input_structure import rows, to_device
from calibayes.data.sources import Batch
from calibayes.posterior import NetworkPosterior, Posterior
from calibayes.posterior.ensemble import member_seed
from calibayes.randomness import derived_seed, preserved_global_state, seed_globally

__all__ = ["TrainingData", "exchange_buffers", "member_norm_statistics", "norm_statistics", "replaced_buffers"]


class TrainingData(Protocol):
    """Training data that can be read again."""

    def epoch(self, seed: int, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch, in an order that depends on seed and epoch."""
        ...

    def ordered(self) -> Iterator[Batch]:
        """All batches in the data's own order."""
        ...


def member_norm_statistics(
    posterior: Posterior, train: Callable[[], TrainingData], seed: int, micro_batch_size: int | None = None
) -> dict[str, Tensor]:
    """Return `norm_statistics` of every member of a posterior, by the names of ``posterior.buffer_values()``.

    ``train`` is called only if there are statistics to take; ``seed`` is that of the ensemble.
    """
    everything: dict[str, Tensor] = {}
    for index, member in enumerate(posterior.members):
        if _norms(member):
            prefix = "" if member is posterior else f"{index}."
            statistics = norm_statistics(member, train(), member_seed(seed, index), micro_batch_size)
            everything |= {f"{prefix}{name}": value for name, value in statistics.items()}
    return everything


def norm_statistics(
    posterior: NetworkPosterior, train: TrainingData, seed: int, micro_batch_size: int | None = None
) -> dict[str, Tensor]:
    """Return the running statistics of the mean weights, by buffer name: the mean over one pass through the training data.

    Norms without running statistics and those in evaluation mode are left out; where there are no others, the data are not
    read. The posterior must be in training mode; it and the global generators stay as they are. The result depends on
    weights, data and ``seed`` alone, so every process gets the same. At most ``micro_batch_size`` examples, or a batch, go
    through the network at once.
    """
    norms = _norms(posterior)
    if not norms:
        return {}
    device = posterior.device
    buffers = {name: value.clone() for name, value in posterior.buffer_values().items()}
    names = [f"{name}.{each}".lstrip(".") for name, part in norms.items() for each, _ in part.named_buffers(recurse=False)]
    names = [name for name in names if name in buffers]  # norms that share a buffer hold it under the first name alone
    for name in names:
        if name.rpartition(".")[2] == "num_batches_tracked":
            buffers[name].zero_()
    seed = derived_seed(seed, "norm statistics")
    with posterior.evaluating():  # a posterior may predict with other weights than those it trains
        vectors = [vector.detach() for vector in posterior.mean_vectors()]
    with preserved_global_state(device), torch.no_grad(), _cumulative(list(norms.values())) as instance_norms:
        for number, inputs in enumerate(_parts(train, seed, micro_batch_size), start=1):
            for part in instance_norms:
                part.momentum = 1.0 / number
            seed_globally(seed, "network", number)
            posterior.call(vectors, to_device(inputs, device), buffers)
    return {name: buffers[name] for name in names}


def exchange_buffers(posterior: Posterior, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Write to the buffers of a posterior, by name; returns their former values."""
    buffers = posterior.buffer_values() if values else {}
    before = {name: buffers[name].clone() for name in values}
    for name, value in values.items():
        buffers[name].copy_(value)
    return before


@contextmanager
def replaced_buffers(posterior: Posterior, values: Callable[[], Mapping[str, Tensor]]) -> Iterator[None]:
    """Give a posterior other buffers within this context; afterwards it has its own again, to the bit."""
    before = exchange_buffers(posterior, values())
    try:
        yield
    finally:
        exchange_buffers(posterior, before)


def _norms(posterior: NetworkPosterior) -> dict[str, _NormBase]:
    return {
        name: part
        for name, part in posterior.structure().named_modules()
        if isinstance(part, _NormBase) and part.training and part.track_running_stats
    }


def _parts(train: TrainingData, seed: int, most: int | None) -> Iterator[Any]:
    for batch in train.epoch(seed, 0):
        count = 1 if most is None else -(-batch.total // most)
        for k in range(count):
            own = slice(k * batch.total // count, (k + 1) * batch.total // count)
            yield batch.inputs if count == 1 else rows(batch.inputs, own)


@contextmanager
def _cumulative(norms: list[_NormBase]) -> Iterator[list[_NormBase]]:
    """Let batch norms average all that they see, each in its own process; yields the other norms.

    A batch norm without a momentum weighs by its own count of batches, which is right also where it is skipped now and then.
    Instance norms have no such count.
    """
    momenta = [part.momentum for part in norms]
    synchronised = [part for part in norms if isinstance(part, nn.SyncBatchNorm)]
    for part in norms:
        part.momentum = None
    for part in synchronised:
        part.forward = partial(_BatchNorm.forward, part)  # type: ignore[method-assign]
    try:
        yield [part for part in norms if not isinstance(part, _BatchNorm)]
    finally:
        for part, momentum in zip(norms, momenta, strict=True):
            part.momentum = momentum
        for part in synchronised:
            del part.forward
