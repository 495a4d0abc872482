"""The terms of a step that see the data, cross-entropy and AECE, and their gradient with respect to the samples θ_r."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor

from calibayes.objective import cross_entropy
from calibayes.posterior.statistics import StepStatistics
from calibayes.randomness import seed_globally

if TYPE_CHECKING:
    from calibayes.training.step import Stepper

__all__ = ["DataTerms", "Part", "Place"]

Slice = tuple[Tensor, Tensor]


class Place(NamedTuple):
    """Where training is: epoch and batch within it, and optimiser steps since the start, all from 0."""

    epoch: int
    batch: int
    step: int


class Part(NamedTuple):
    """A micro-batch of one process.

    Attributes:
        inputs: of the network.
        targets: class indices.
        own: how many of the examples count: all, or none where a process has one of another's.
        total: how many examples the whole batch has, over all micro-batches and processes.
        weights: how much each example counts, or ``None``.
    """

    inputs: Any
    targets: Tensor
    own: int
    total: int
    weights: Tensor | None = None


class DataTerms:
    """One chunk of samples on one batch, which may lie in several parts: micro-batches, and other processes.

    AECE is a function of the whole batch, but it sees the network only through the scores (r, c). They are collected from
    all parts outside the graph, the closed-form derivative is taken there, and every part is sent its own slice of it.
    For micro-batches that takes a second pass through the network, for processes one message of the scores.
    """

    def __init__(
        self, stepper: Stepper, leaves: list[Tensor], count: int, first: int, statistics: StepStatistics, place: Place
    ) -> None:
        self.stepper, self.leaves, self.count, self.first = stepper, leaves, count, first
        self.statistics, self.place = statistics, place

    def backward(
        self, parts: list[Part], calibration_parts: list[Part] | None, weight: float, calibration_weight: float
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Backpropagate the weighted terms to the leaves; returns what mean cross-entropy and AECE are the sums of.

        The cross-entropy is that of this process's examples, divided by the number of all; AECE is that of all.

        Args:
            parts: the batch.
            calibration_parts: what AECE is taken on: ``None``, ``parts`` itself, or a held-out batch.
            weight: of the mean cross-entropy.
            calibration_weight: of AECE.
        """
        cross = []
        held_out = calibration_parts is not None and calibration_parts is not parts
        calibration = None if calibration_parts is None else _Calibration(self, calibration_parts, held_out)
        for index, part in enumerate(parts):
            logits = self.logits(part, index, "batch", update=True)
            share = part.own / part.total
            term = cross_entropy(logits, part.targets, part.weights)
            cross.append(_times(share, term.detach()))
            loss = _times(share * weight, term)
            if calibration is not None and not held_out:
                loss = loss + calibration.term(logits, part, index) * calibration_weight
            self._backward(loss)
        if calibration is not None and held_out:
            for index, part in enumerate(calibration.parts):
                logits = self.logits(part, index, "held-out", update=False)
                self._backward(calibration.term(logits, part, index) * calibration_weight)
        return cross, [] if calibration is None else [calibration.value]

    def logits(self, part: Part, index: int, stream: Literal["batch", "held-out"], *, update: bool) -> Tensor:
        """The network in training mode; dropout is seeded by the place, so a second pass sees the same masks."""
        place, rank = self.place, self.stepper.processes.rank
        others = (rank,) if rank else ()  # no two processes have the same masks
        seed_globally(self.stepper.settings.seed, "network", stream, place.epoch, place.batch, self.first, index, *others)
        buffers = self.statistics.fresh()
        logits = self.stepper.logits(self.leaves, self.count, part, buffers)
        if update:
            # Shares differ by an example; weights that differ would let the statistics of processes drift apart.
            self.statistics.add(buffers, len(part.targets) if self.stepper.processes.size == 1 else 1)
        return logits

    def _backward(self, loss: Tensor) -> None:
        self.stepper.scaler.scale(loss).backward()


def _times(factor: float, value: Tensor) -> Tensor:
    return value if factor == 1.0 else value * factor


class _Calibration:
    """AECE of a batch in parts: its value, and for each part something with the right gradient."""

    value: Tensor

    def __init__(self, data: DataTerms, parts: list[Part], held_out: bool) -> None:
        self.parts = parts
        self._objective = data.stepper.objective
        self._processes = data.stepper.processes
        self._slices: list[Slice] | None = None
        if len(parts) > 1:
            stream: Literal["batch", "held-out"] = "held-out" if held_out else "batch"
            with torch.no_grad():
                found = [self._scores(data.logits(part, index, stream, update=False), part) for index, part in enumerate(parts)]
            self._slices = self._derivative(found)

    def term(self, logits: Tensor, part: Part, index: int) -> Tensor:
        r, c = self._scores(logits, part)
        if self._slices is None and self._processes.size == 1:
            value = self._objective.aece(r, c, part.weights)
            self.value = value.detach()
            return value
        slices = self._derivative([(r.detach(), c.detach())]) if self._slices is None else self._slices
        grad_r, grad_c = slices[index]
        return (r * grad_r).sum() + (c * grad_c).sum()

    def _scores(self, logits: Tensor, part: Part) -> Slice:
        """Those of the examples that count."""
        r, c = self._objective.scores(logits, part.targets)
        return r[..., : part.own], c[..., : part.own]

    def _derivative(self, found: list[Slice]) -> list[Slice]:
        r, c = (torch.cat(scores, dim=-1) for scores in zip(*found, strict=True))
        counts = [part.weights[: part.own] for part in self.parts if part.weights is not None]
        everyone = self._processes.sizes(self.parts[0].total)
        self.value, *derivatives = self._objective.derivative(
            r, c, everyone, self._processes, torch.cat(counts) if counts else None
        )
        sizes = [part_r.shape[-1] for part_r, _ in found]
        grad_r, grad_c = (torch.split_with_sizes(each, sizes, dim=-1) for each in derivatives)
        return list(zip(grad_r, grad_c, strict=True))
