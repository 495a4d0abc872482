"""One step of Algorithm 1."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from calibayes.data.sources import Batch
from calibayes.data.structure import rows
from calibayes.distributed import ALONE, Processes
from calibayes.distributed.batch_norm import batch_norms, statistics_names, synchronised
from calibayes.errors import DataError, NonFiniteLossError
from calibayes.objective import Objective
from calibayes.posterior.network_posterior import NetworkPosterior
from calibayes.posterior.outputs import check_labels, check_not_probabilities, logits_of
from calibayes.posterior.statistics import StepStatistics
from calibayes.posterior.vectorized import call_samples, pays_to_vectorize
from calibayes.randomness import generator_for, seed_globally
from calibayes.training.data_terms import DataTerms, Part, Place

__all__ = ["Place", "StepSettings", "StepTerms", "Stepper", "check_finite"]

_MOST_AT_ONCE = 16


class StepTerms(NamedTuple):
    """What one step logged: the loss, and mean cross-entropy, AECE and KL before their weights."""

    total: float
    cross_entropy: float
    calibration: float
    kl: float
    examples: int


@dataclass(frozen=True)
class StepSettings:
    """How a step is taken; see `calibayes.fit` for what each means."""

    samples: int = 1
    sample_chunk: int | Literal["auto"] = "auto"
    micro_batch_size: int | None = None
    clip_norm: float | None = None
    precision: torch.dtype | None = None
    seed: int = 0


def check_finite(terms: Mapping[str, float], place: Place, clipping: str) -> None:
    """Raise `NonFiniteLossError` for the first term that is infinite or NaN; ``clipping`` is how gradients are clipped here."""
    for name, value in terms.items():
        if not math.isfinite(value):
            raise NonFiniteLossError(
                f"The {name} term became {value} in epoch {place.epoch + 1}, step {place.step + 1}. This step was not "
                f"taken. Try a smaller learning rate, {clipping}, or look for NaN in the inputs.",
                term=name,
                epoch=place.epoch + 1,
                step=place.step + 1,
            )


class Stepper:
    """Takes optimiser steps on the posterior's parameters: the only place that changes weights."""

    def __init__(
        self,
        posterior: NetworkPosterior,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        dataset_size: int,
        settings: StepSettings,
        processes: Processes = ALONE,
        clipping: str = "`clip_norm`",
    ) -> None:
        self.posterior, self.objective, self.optimizer = posterior, objective, optimizer
        self.dataset_size, self.settings, self.processes = dataset_size, settings, processes
        self.device, self._clipping = posterior.device, clipping
        half = settings.precision == torch.float16
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=half)
        self._parameters = list(posterior.parameters())
        self._bayesian = posterior.num_bayesian > 0
        self._samples = settings.samples if self._bayesian else 1
        self._chunk: int | None = None
        self._checked = False
        self.stop = False
        self._norms: list[Any] = []
        self._alike: set[str] = set()

    def step(self, batch: Batch, held_out: Batch | None, place: Place) -> StepTerms:
        """One update of φ on a batch; the calibration term is taken on ``held_out`` where there is one.

        ``stop``, which says that someone wants to end training, is true afterwards if it was in any process.
        """
        for parameter in self._parameters:  # the optimiser's own, without what its `zero_grad` does for profilers
            parameter.grad = None
        held_out_parts = None if held_out is None else self._split(held_out)
        terms, statistics = self.gradients(self._split(batch), held_out_parts, place)
        self._update(place)
        self.keep(statistics, terms.examples)
        self.posterior.after_step()
        return terms

    def gradients(self, parts: list[Part], held_out: list[Part] | None, place: Place) -> tuple[StepTerms, StepStatistics]:
        """Add the gradient of the loss of a batch, that of all processes together, to those of the posterior's parameters.

        Args:
            parts: this process's micro-batches; each process has as many, and its share as `Processes.sizes` says.
            held_out: likewise, what the calibration term is taken on; ``None`` for the batch itself.
            place: where training is.

        Returns:
            The terms of the loss, and the running statistics to `keep` once the step is taken.
        """
        with self.posterior.fixed():
            return self._gradients(parts, held_out, place)

    def _gradients(self, parts: list[Part], held_out: list[Part] | None, place: Place) -> tuple[StepTerms, StepStatistics]:
        examples = parts[0].total
        weight = self.objective.calibration_weight(place.step, examples)
        calibration_parts = None if weight == 0 else parts if held_out is None else held_out
        statistics = StepStatistics(self.posterior)
        cross, calibration = [], []
        if self._chunk is None:
            if self.processes.size > 1:
                self._norms = list(batch_norms(self.posterior.structure()).values())
                self._alike = statistics_names(self.posterior.structure())
            self._chunk = min(self.processes.counts(self._chosen_chunk(parts[0]), self.device))
        for first in range(0, self._samples, self._chunk):
            count = min(self._chunk, self._samples - first)
            leaves, kept = self.posterior.leaves(self._generators(place, first, count))
            data = DataTerms(self, leaves, count, first, statistics, place)
            share = count / self._samples
            found = data.backward(parts, calibration_parts, share, share * weight)
            cross += [share * value for value in found[0]]
            calibration += [share * value for value in found[1]]
            self.posterior.pull_back(leaves, kept)
        cross = self._reduced(cross)
        kl = self.posterior.kl_values()
        kl_weight = self.objective.kl_weight(place.step, self.dataset_size) if self._bayesian else 0.0
        terms = self._terms(cross, calibration, kl, weight, kl_weight, examples, place)
        if kl_weight > 0:
            self.posterior.pull_back_kl(kl_weight * self.scaler.get_scale())
        return terms, statistics

    def keep(self, statistics: StepStatistics, examples: int) -> None:
        """Make the running statistics of a step on so many examples the posterior's own."""
        own = self.processes.sizes(examples)[self.processes.rank]
        statistics.keep(self.processes, own / examples, self._alike)

    def _reduced(self, cross: list[Tensor]) -> list[Tensor]:
        """The gradients of all processes' examples in each of them, and the cross-entropy: one message a step."""
        if self.processes.size == 1:
            return cross
        parameters = self._parameters
        numbers = torch.stack([sum(cross[1:], start=cross[0]), cross[0].new_tensor(float(self.stop))])
        there = numbers.new_tensor([float(each.grad is not None) for each in parameters])
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in parameters]
        self.processes.sum_([*gradients, numbers, there])
        for parameter, gradient, somewhere in zip(parameters, gradients, there.tolist(), strict=True):
            parameter.grad = gradient if somewhere else None
        self.stop = bool(numbers[1] > 0)
        return [numbers[0]]

    def _generators(self, place: Place, first: int, count: int) -> list[torch.Generator]:
        """Those of samples first … first+count-1: each θ_r has its own seed, however they are grouped."""
        seed, samples = self.settings.seed, range(first, first + count)
        return [generator_for(self.device, seed, "noise", place.epoch, place.batch, r) for r in samples]

    def _terms(
        self,
        cross: list[Tensor],
        calibration: list[Tensor],
        kl: list[Tensor],
        weight: float,
        kl_weight: float,
        examples: int,
        place: Place,
    ) -> StepTerms:
        numbers = torch.stack([value.to(cross[0].dtype) for value in (*cross, *calibration, *kl)]).tolist()  # one transfer
        bounds = (0, len(cross), len(cross) + len(calibration), len(numbers))
        values = [sum(numbers[a:b], 0.0) for a, b in pairwise(bounds)]
        check_finite(dict(zip(("cross_entropy", "calibration", "kl"), values, strict=True)), place, self._clipping)
        total = values[0] + weight * values[1] + kl_weight * values[2]
        return StepTerms(total, values[0], values[1], values[2], examples)

    def _update(self, place: Place) -> None:
        if self.settings.clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            norm = torch.nn.utils.clip_grad_norm_(self.posterior.parameters(), self.settings.clip_norm)
            if not self.scaler.is_enabled() and not math.isfinite(float(norm)):
                raise NonFiniteLossError(
                    f"The gradient's norm became {float(norm)} in epoch {place.epoch + 1}, step {place.step + 1}. "
                    "This step was not taken.",
                    term="gradient",
                    epoch=place.epoch + 1,
                    step=place.step + 1,
                )
        # An optimiser that draws noise draws the same in every process, and however many there are.
        seed_globally(self.settings.seed, "optimizer", place.epoch, place.batch)
        if not self.scaler.is_enabled():
            self.optimizer.step()
            return
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def _split(self, batch: Batch) -> list[Part]:
        """This process's micro-batches: as many as every other process has, since batch norms wait for one another."""
        inputs, targets, total, weights = batch
        sizes = self.processes.sizes(total)
        own = sizes[self.processes.rank]
        size = self.settings.micro_batch_size or max(sizes)
        if size >= max(sizes):
            return [Part(inputs, targets, own, total, weights)]
        if self.processes.size == 1:
            cuts = [(k, min(k + size, total)) for k in range(0, total, size)]
        else:
            count = -(-max(sizes) // size)
            cuts = [(k * own // count, (k + 1) * own // count) for k in range(count)]
        parts = []
        for start, stop in cuts:
            there = slice(start, stop) if start < stop else slice(0, 1)
            counts = None if weights is None else weights[there]
            parts.append(Part(rows(inputs, there), targets[there], stop - start, total, counts))
        return parts

    def logits(self, leaves: list[Tensor], count: int, part: Part, buffers: dict[str, Tensor]) -> Tensor:
        """Logits ``[n, K]`` of one sample, or ``[C, n, K]`` of several at once."""
        inputs, targets = part.inputs, part.targets
        with self._autocast(), self._synchronised(part):
            if count == 1:
                logits = logits_of(self.posterior.call(leaves, inputs, buffers), len(targets))
            else:
                logits = call_samples(self.posterior, leaves, inputs, len(targets), buffers)
        check_labels(targets, logits.shape[-1])
        if not self._checked:
            check_not_probabilities(logits)
            self._checked = True
        return logits

    def _chosen_chunk(self, part: Part) -> int:
        """How many samples run at once; a network that vmap cannot handle is found out by a trial run."""
        if self._norms:
            return 1
        wanted = self.settings.sample_chunk
        if wanted == "auto":
            wanted = _MOST_AT_ONCE if pays_to_vectorize(self.posterior) else 1
        chunk = min(wanted, self._samples)
        if chunk == 1:
            return 1
        vectors = [vector.detach().repeat(2, 1).requires_grad_() for vector in self.posterior.mean_vectors()]
        buffers = StepStatistics(self.posterior).fresh()
        try:
            with self._autocast():
                logits = call_samples(self.posterior, vectors, part.inputs, len(part.targets), buffers)
            logits.sum().backward()
        except (RuntimeError, NotImplementedError, DataError) as error:
            if self.settings.sample_chunk != "auto":
                reason = str(error).strip().splitlines()[0]
                warnings.warn(f"The samples run one after the other, since vmap refuses this network: {reason}", stacklevel=2)
            return 1
        return chunk

    def _synchronised(self, part: Part) -> AbstractContextManager[Any]:
        if self.processes.size == 1:
            return nullcontext()
        return synchronised(self._norms, self.processes, counted=part.own > 0)

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.settings.precision is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.settings.precision)
