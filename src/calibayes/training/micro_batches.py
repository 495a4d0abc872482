"""The inputs of a step: its position in training, its noise, and the micro-batches of its batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from calibayes.data.input_structure import rows
from calibayes.data.sources import Batch
from calibayes.distributed import Processes
from calibayes.randomness import generator_for

__all__ = ["MicroBatch", "TrainingPosition", "noise_generators", "split"]


class TrainingPosition(NamedTuple):
    """The position of a step in training: epoch, batch within it, and optimiser steps since the start, all from 0."""

    epoch: int
    batch: int
    step: int


class MicroBatch(NamedTuple):
    """A micro-batch of one process."""

    inputs: Any
    targets: Tensor  # class indices; unused zeros for out-of-domain inputs
    own: int  # examples that count: all, or none where a process runs an example of another one
    total: int  # examples in the whole batch, over all micro-batches and processes
    weights: Tensor | None = None


def noise_generators(device: torch.device, seed: int, place: TrainingPosition, samples: range) -> list[torch.Generator]:
    """A generator for the noise of each θ_r of a step, which depends on its number $r$, however samples are grouped."""
    return [generator_for(device, seed, "noise", place.epoch, place.batch, r) for r in samples]


def split(batch: Batch, processes: Processes, size: int | None) -> list[MicroBatch]:
    """This process's micro-batches of at most ``size`` examples, or one.

    Every process has equally many, since batch norms wait for one another.
    """
    inputs, targets, total, weights = batch
    sizes = processes.sizes(total)
    own = sizes[processes.rank]
    size = size or max(sizes)
    if size >= max(sizes):
        return [MicroBatch(inputs, targets, own, total, weights)]
    if processes.size == 1:
        cuts = [(k, min(k + size, total)) for k in range(0, total, size)]
    else:
        count = -(-max(sizes) // size)
        cuts = [(k * own // count, (k + 1) * own // count) for k in range(count)]
    parts = []
    for start, stop in cuts:
        there = slice(start, stop) if start < stop else slice(0, 1)
        counts = None if weights is None else weights[there]
        parts.append(MicroBatch(rows(inputs, there), targets[there], stop - start, total, counts))
    return parts
