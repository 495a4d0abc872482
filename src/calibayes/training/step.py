"""One step of Algorithm 1."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import torch
from torch import Tensor

from calibayes.data.sources import Batch
from calibayes.distributed import ALONE, Processes
from calibayes.distributed.batch_norm import batch_norms, statistics_names, synchronised
from calibayes.errors import DataError
from calibayes.objective import Objective
from calibayes.objective.term_gradient import weight_of
from calibayes.objective.terms import On
from calibayes.posterior.network_outputs import check_labels, check_not_probabilities, logits_of
from calibayes.posterior.network_posterior import NetworkPosterior
from calibayes.posterior.running_statistics import StepStatistics
from calibayes.posterior.vectorized import call_samples, pays_to_vectorize
from calibayes.randomness import seed_globally
from calibayes.training.data_terms import AveragedTerm, Batches, DataTerms, WeightedTerm, averaged_terms
from calibayes.training.history import StepTerms
from calibayes.training.micro_batches import MicroBatch, TrainingPosition, noise_generators, split
from calibayes.training.optimizers import handles_kl
from calibayes.training.weight_checks import check_finite, clip_gradient

__all__ = ["StepSettings", "Stepper"]

_MOST_AT_ONCE = 16


@dataclass(frozen=True)
class StepSettings:
    """Settings of a step; see `calibayes.fit` for what each means."""

    samples: int = 1
    sample_chunk: int | Literal["auto"] = "auto"
    micro_batch_size: int | None = None
    clip_norm: float | None = None
    precision: torch.dtype | None = None
    seed: int = 0


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
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=settings.precision == torch.float16)
        self._parameters = list(posterior.parameters())
        self._bayesian = posterior.num_bayesian > 0
        self._samples = settings.samples if posterior.random_in_training else 1
        self._chunk: int | None = None
        self._checked = False
        self.stop = False
        self._norms: list[Any] = []  # stays empty in a single process
        self._alike: set[str] = set()

    def step(
        self, batch: Batch, held_out: Batch | None, place: TrainingPosition, out_of_domain: Batch | None = None
    ) -> StepTerms:
        """One update of φ on a batch; ``held_out`` and ``out_of_domain`` are for the terms that are taken there.

        ``stop``, a request to end training, is true afterwards if it was in any process.
        """
        for parameter in self._parameters:  # as `optimizer.zero_grad` does, without its work for profilers
            parameter.grad = None
        size = self.settings.micro_batch_size
        given: dict[On, Batch | None] = {"batch": batch, "held_out": held_out, "out_of_domain": out_of_domain}
        batches = {on: [] if each is None else split(each, self.processes, size) for on, each in given.items()}
        terms, statistics = self.gradients(batches, place)
        self._update(place)
        self.keep(statistics, terms.examples)
        return terms

    def gradients(self, batches: Batches, place: TrainingPosition) -> tuple[StepTerms, StepStatistics]:
        """Add the gradient of the loss of a batch, that of all processes together, to those of the posterior's parameters.

        Args:
            batches: this process's micro-batches of the batches that terms are taken on; every process has equally many, and
                its share as `Processes.sizes` says.
            place: the position in training.

        Returns:
            The terms of the loss, and the running statistics to `keep` once the step is taken.
        """
        if self._samples > 1:  # what does not depend on the sample is run once
            seed_globally(self.settings.seed, "features", place.epoch, place.batch)
            with self._autocast():
                batches = {on: [p._replace(inputs=self.posterior.features(p.inputs)) for p in batches[on]] for on in batches}
        with self.posterior.fixed():
            return self._gradients(batches, place)

    def _gradients(self, batches: Batches, place: TrainingPosition) -> tuple[StepTerms, StepStatistics]:
        parts, loss_name = batches["batch"], self.objective.loss.name
        examples = parts[0].total
        weights = {term.name: weight_of(term, place.step, examples) for term in self.objective.terms}
        terms = [WeightedTerm(term, weights[term.name]) for term in self.objective.terms if weights[term.name] > 0]
        statistics = StepStatistics(self.posterior)
        if self._chunk is None:
            if self.processes.size > 1:
                self._norms = list(batch_norms(self.posterior.structure()).values())
                self._alike = statistics_names(self.posterior.structure())
            self._chunk = min(self.processes.counts(self._chosen_chunk(parts[0]), self.device))
        averaged: dict[str, AveragedTerm] = {}
        if self._chunk < self._samples and any(each.term.of == "predictive" for each in terms):
            chunks = (data for data, _ in self._chunks(statistics, place))
            averaged = averaged_terms(chunks, self._samples, batches, terms, self.processes)
        collected: dict[str, list[Tensor]] = {loss_name: [], **{name: [] for name in weights}}
        for data, kept in self._chunks(statistics, place):
            share = data.count / self._samples
            for name, parts_of_value in data.backward(batches, terms, averaged, share).items():
                collected[name] += [share * part for part in parts_of_value]
            self.posterior.pull_back(data.leaves, kept)
        collected[loss_name] = self._reduced(collected[loss_name])
        collected["kl"] = self.posterior.kl_values()
        weights["kl"] = self.objective.kl_weight(place.step, self.dataset_size) if self._bayesian else 0.0
        first = collected[loss_name][0]
        numbers = torch.stack([value.to(first.dtype) for each in collected.values() for value in each]).tolist()  # one transfer
        rest = iter(numbers)
        values = {name: sum(islice(rest, len(each)), 0.0) for name, each in collected.items()}
        check_finite(values, place, self._clipping)
        if weights["kl"] > 0 and not handles_kl(self.optimizer):
            self.posterior.pull_back_kl(weights["kl"] * self.scaler.get_scale())
        total = sum(weights.get(name, 1.0) * value for name, value in values.items())
        return StepTerms(total, values, examples), statistics

    def _chunks(self, statistics: StepStatistics, place: TrainingPosition) -> Iterator[tuple[DataTerms, list[Any]]]:
        """The samples of the weights in chunks that run at once, each with the second argument of `pull_back`."""
        assert self._chunk is not None
        for first in range(0, self._samples, self._chunk):
            count = min(self._chunk, self._samples - first)
            noise = noise_generators(self.device, self.settings.seed, place, range(first, first + count))
            leaves, kept = self.posterior.leaves(noise)
            yield DataTerms(self, leaves, count, first, statistics, place), kept

    def keep(self, statistics: StepStatistics, examples: int) -> None:
        """Give the posterior the running statistics of a step on ``examples`` examples."""
        own = self.processes.sizes(examples)[self.processes.rank]
        statistics.keep(self.processes, own / examples, self._alike)

    def _reduced(self, losses: list[Tensor]) -> list[Tensor]:
        """The gradients of all processes' examples in each of them, and the mean loss: one message a step."""
        if self.processes.size == 1:
            return losses
        parameters = self._parameters
        numbers = torch.stack([sum(losses[1:], start=losses[0]), losses[0].new_tensor(float(self.stop))])
        there = numbers.new_tensor([float(each.grad is not None) for each in parameters])
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in parameters]
        self.processes.sum_([*gradients, numbers, there])
        for parameter, gradient, somewhere in zip(parameters, gradients, there.tolist(), strict=True):
            parameter.grad = gradient if somewhere else None
        self.stop = bool(numbers[1] > 0)
        return [numbers[0]]

    def _update(self, place: TrainingPosition) -> None:
        if self.settings.clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            clip_gradient(self._parameters, self.settings.clip_norm, place, check=not self.scaler.is_enabled())
        # An optimiser that draws noise draws the same in every process, and however many there are.
        seed_globally(self.settings.seed, "optimizer", place.epoch, place.batch)
        if not self.scaler.is_enabled():
            self.optimizer.step()
            return
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def logits(self, leaves: list[Tensor], count: int, part: MicroBatch, buffers: dict[str, Tensor]) -> Tensor:
        """Logits ``[n, K]`` of one sample, or ``[C, n, K]`` of several at once."""
        inputs, targets = part.inputs, part.targets
        with self._autocast(), synchronised(self._norms, self.processes, counted=part.own > 0):
            if count == 1:
                logits = logits_of(self.posterior.call(leaves, inputs, buffers), len(targets))
            else:
                logits = call_samples(self.posterior, leaves, inputs, len(targets), buffers)
        check_labels(targets, logits.shape[-1])
        if not self._checked:
            check_not_probabilities(logits)
            self._checked = True
        return logits

    def _chosen_chunk(self, part: MicroBatch) -> int:
        """Return how many samples run at once: one where vmap cannot handle the network, as a trial run shows."""
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
                warnings.warn(
                    f"The samples run one after the other, because vmap does not support this network: {reason}", stacklevel=2
                )
            return 1
        return chunk

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.settings.precision is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.settings.precision)
