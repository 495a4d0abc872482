"""The parts of a step's loss that see the data, and their gradient with respect to the samples θ_r."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from calibayes.distributed import Processes
from calibayes.objective.term_gradient import TermScores, derivative, pulled_back, scores_of, value_of
from calibayes.objective.terms import On, Term
from calibayes.posterior.running_statistics import StepStatistics
from calibayes.randomness import seed_globally
from calibayes.training.training_position import MicroBatch, TrainingPosition

if TYPE_CHECKING:
    from calibayes.training.averaged_terms import AveragedTerm
    from calibayes.training.step import Stepper

__all__ = ["Batches", "DataTerms", "MicroBatch", "TrainingPosition", "WeightedTerm", "own_scores", "sliced_derivative"]

Batches = Mapping[On, list[MicroBatch]]
_STREAMS: dict[On, str] = {"batch": "batch", "held_out": "held-out", "out_of_domain": "out-of-domain"}


class WeightedTerm(NamedTuple):
    """A term that counts in this step, and how much."""

    term: Term
    weight: float


class DataTerms:
    """One chunk of samples on one batch, which may lie in several parts: micro-batches, and other processes.

    A term is a function of the whole batch, but it sees the network only through its scores. They are collected from all
    parts outside the graph, the derivative of the term is taken there, and every part is sent its own slice of it. For
    micro-batches that takes a second pass through the network, for processes one message of the scores.
    """

    def __init__(
        self,
        stepper: Stepper,
        leaves: list[Tensor],
        count: int,
        first: int,
        statistics: StepStatistics,
        place: TrainingPosition,
    ) -> None:
        self.stepper, self.leaves, self.count, self.first = stepper, leaves, count, first
        self.statistics, self.place = statistics, place

    def backward(
        self, batches: Batches, terms: Sequence[WeightedTerm], averaged: Mapping[str, AveragedTerm], share: float
    ) -> dict[str, list[Tensor]]:
        """Backpropagate the weighted terms to the leaves; returns what each one's value is the sum of, by name.

        The mean loss is that of this process's examples, divided by the number of all; terms are those of all.

        Args:
            batches: the training batch, and the others that terms are taken on.
            terms: those that count.
            averaged: those of them whose derivative is known already, by name.
            share: of the samples of the weights, those in this chunk.
        """
        loss = self.stepper.objective.loss
        found: dict[str, list[Tensor]] = {loss.name: []}
        for on in _STREAMS:
            here = [each for each in terms if each.term.on == on]
            if on != "batch" and not here:
                continue
            parts = batches[on]
            spread = self._spread(on, parts, [each.term for each in here if each.term.name not in averaged])
            pieces: Mapping[str, _SpreadTerm | AveragedTerm] = {**spread, **averaged}
            for index, part in enumerate(parts):
                logits = self.logits(part, index, on, update=on == "batch")
                sums = []
                if on == "batch":
                    mean = loss.mean(logits, part.targets, part.weights)
                    found[loss.name].append(_times(part.own / part.total, mean.detach()))
                    sums.append(_times(part.own / part.total * share, mean))
                sums += [pieces[term.name].piece(logits, part, index) * (share * weight) for term, weight in here]
                self._backward(sum(sums[1:], start=sums[0]))
            found.update({term.name: [pieces[term.name].value] for term, _ in here})
        return found

    def logits(self, part: MicroBatch, index: int, on: On, *, update: bool) -> Tensor:
        """The network in training mode; dropout is seeded by the place, so a second pass sees the same masks."""
        place, rank = self.place, self.stepper.processes.rank
        others = (rank,) if rank else ()  # no two processes have the same masks
        stream = _STREAMS[on]
        seed_globally(self.stepper.settings.seed, "network", stream, place.epoch, place.batch, self.first, index, *others)
        buffers = self.statistics.fresh()
        logits = self.stepper.logits(self.leaves, self.count, part, buffers)
        if update:
            # Shares differ by an example; weights that differ would let the statistics of processes drift apart.
            self.statistics.add(buffers, len(part.targets) if self.stepper.processes.size == 1 else 1)
        return logits

    def _spread(self, on: On, parts: list[MicroBatch], terms: list[Term]) -> dict[str, _SpreadTerm]:
        """The terms of a batch; where it lies in several parts, a first pass collects their scores."""
        scores: dict[str, list[TermScores]] = {term.name: [] for term in terms}
        if len(parts) > 1 and terms:
            with torch.no_grad():
                for index, part in enumerate(parts):
                    logits = self.logits(part, index, on, update=False)
                    for term in terms:
                        scores[term.name].append(own_scores(term, logits, part))
        return {term.name: _SpreadTerm(term, parts, self.stepper.processes, scores[term.name]) for term in terms}

    def _backward(self, loss: Tensor) -> None:
        self.stepper.scaler.scale(loss).backward()


def _times(factor: float, value: Tensor) -> Tensor:
    return value if factor == 1.0 else value * factor


class _SpreadTerm:
    """A term of a batch in parts: its value, and for each part something with the right gradient."""

    value: Tensor

    def __init__(self, term: Term, parts: list[MicroBatch], processes: Processes, scores: list[TermScores]) -> None:
        self._term, self._parts, self._processes = term, parts, processes
        self._slices: list[TermScores] | None = None
        if scores:
            self.value, self._slices = sliced_derivative(term, scores, parts, processes)

    def piece(self, logits: Tensor, part: MicroBatch, index: int) -> Tensor:
        scores = own_scores(self._term, logits, part)
        if self._slices is not None:
            return pulled_back(scores, self._slices[index])
        if self._processes.size == 1:
            value = value_of(self._term, scores, part.weights)
            self.value = value.detach()
            return value
        self.value, slices = sliced_derivative(self._term, [scores], self._parts, self._processes)
        return pulled_back(scores, slices[0])


def own_scores(term: Term, logits: Tensor, part: MicroBatch) -> TermScores:
    """The scores of those examples of a part that count."""
    targets = None if term.on == "out_of_domain" else part.targets
    return tuple(score[..., : part.own] for score in scores_of(term, logits, targets))


def sliced_derivative(
    term: Term, scores: list[TermScores], parts: list[MicroBatch], processes: Processes
) -> tuple[Tensor, list[TermScores]]:
    """The term of the scores of all parts and processes, and its derivative with respect to those of each part here."""
    whole = tuple(torch.cat(pieces, dim=-1) for pieces in zip(*scores, strict=True))
    counts = [part.weights[: part.own] for part in parts if part.weights is not None]
    sizes = processes.sizes(parts[0].total)
    value, gradients = derivative(term, whole, sizes, processes, torch.cat(counts) if counts else None)
    lengths = [each[0].shape[-1] for each in scores]
    return value, list(zip(*(torch.split_with_sizes(each, lengths, dim=-1) for each in gradients), strict=True))
