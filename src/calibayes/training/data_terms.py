"""The terms of a step that see the data, cross-entropy and AECE, and their gradient with respect to the samples θ_r."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor

from calibayes.data.batches import Batch
from calibayes.objective import cross_entropy
from calibayes.posterior.statistics import StepStatistics
from calibayes.randomness import seed_globally

if TYPE_CHECKING:
    from calibayes.training.step import Stepper

__all__ = ["DataTerms", "Place"]

Slice = tuple[Tensor, Tensor]


class Place(NamedTuple):
    """Where training is: epoch and batch within it, and optimiser steps since the start, all from 0."""

    epoch: int
    batch: int
    step: int


class DataTerms:
    """One chunk of samples on one batch, which may lie in several parts (micro-batches).

    AECE is a function of the whole batch, but it sees the network only through the scores (r, c): a pass without gradients
    collects them, its closed-form derivative is taken there, and every part is sent its own slice of it.
    """

    def __init__(
        self, stepper: Stepper, leaves: list[Tensor], count: int, first: int, statistics: StepStatistics, place: Place
    ) -> None:
        self.stepper, self.leaves, self.count, self.first = stepper, leaves, count, first
        self.statistics, self.place = statistics, place

    def backward(
        self, parts: list[Batch], calibration_parts: list[Batch] | None, weight: float, calibration_weight: float
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Backpropagate the weighted terms to the leaves; returns what mean cross-entropy and AECE are the sums of.

        Args:
            parts: the batch.
            calibration_parts: what AECE is taken on: ``None``, ``parts`` itself, or a held-out batch.
            weight: of the mean cross-entropy.
            calibration_weight: of AECE.
        """
        examples = sum(len(targets) for _, targets in parts)
        cross = []
        held_out = calibration_parts is not None and calibration_parts is not parts
        calibration = None if calibration_parts is None else _Calibration(self, calibration_parts, held_out)
        for index, part in enumerate(parts):
            logits = self.logits(part, index, "batch", update=True)
            share = len(part[1]) / examples
            term = cross_entropy(logits, part[1])
            cross.append(_times(share, term.detach()))
            loss = _times(share * weight, term)
            if calibration is not None and not held_out:
                loss = loss + calibration.term(logits, part[1], index) * calibration_weight
            self._backward(loss)
        if calibration is not None and held_out:
            for index, part in enumerate(calibration.parts):
                logits = self.logits(part, index, "held-out", update=False)
                self._backward(calibration.term(logits, part[1], index) * calibration_weight)
        return cross, [] if calibration is None else [calibration.value]

    def logits(self, part: Batch, index: int, stream: Literal["batch", "held-out"], *, update: bool) -> Tensor:
        """The network in training mode; dropout is seeded by the place, so a second pass sees the same masks."""
        place = self.place
        seed_globally(self.stepper.settings.seed, "network", stream, place.epoch, place.batch, self.first, index)
        buffers = self.statistics.fresh()
        logits = self.stepper.logits(self.leaves, self.count, part, buffers)
        if update:
            self.statistics.add(buffers, len(part[1]))
        return logits

    def _backward(self, loss: Tensor) -> None:
        self.stepper.scaler.scale(loss).backward()


def _times(factor: float, value: Tensor) -> Tensor:
    return value if factor == 1.0 else value * factor


class _Calibration:
    """AECE of a batch in parts: its value, and for each part something with the right gradient."""

    value: Tensor

    def __init__(self, data: DataTerms, parts: list[Batch], held_out: bool) -> None:
        self.parts = parts
        self._objective = data.stepper.objective
        self._slices: list[Slice] | None = None
        if len(parts) > 1:
            stream: Literal["batch", "held-out"] = "held-out" if held_out else "batch"
            with torch.no_grad():
                found = [
                    self._objective.scores(data.logits(part, index, stream, update=False), part[1])
                    for index, part in enumerate(parts)
                ]
            self._slices = self._derivative(found)

    def term(self, logits: Tensor, targets: Tensor, index: int) -> Tensor:
        r, c = self._objective.scores(logits, targets)
        if self._slices is None:
            value = self._objective.calibration.value(r, c).mean()
            self.value = value.detach()
            return value
        grad_r, grad_c = self._slices[index]
        return (r * grad_r).sum() + (c * grad_c).sum()

    def _derivative(self, found: list[Slice]) -> list[Slice]:
        r, c = (torch.cat(scores, dim=-1).requires_grad_() for scores in zip(*found, strict=True))
        value = self._objective.calibration.value(r, c).mean()
        self.value = value.detach()
        derivatives = torch.autograd.grad(value, (r, c), allow_unused=True, materialize_grads=True)
        sizes = [part_r.shape[-1] for part_r, _ in found]
        grad_r, grad_c = (torch.split_with_sizes(d, sizes, dim=-1) for d in derivatives)
        return list(zip(grad_r, grad_c, strict=True))
