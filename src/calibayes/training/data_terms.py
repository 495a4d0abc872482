"""The parts of a step's loss that see the data, and their gradient with respect to the samples θ_r."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from calibayes.distributed import Processes
from calibayes.objective.losses import widened
from calibayes.objective.term_gradient import TermScores, derivative, pulled_back, scores_of, value_of
from calibayes.objective.terms import On, Term
from calibayes.posterior.running_statistics import StepStatistics
from calibayes.randomness import seed_globally
from calibayes.training.micro_batches import MicroBatch, TrainingPosition

if TYPE_CHECKING:
    from calibayes.training.step import Stepper

__all__ = ["AveragedTerm", "Batches", "DataTerms", "WeightedTerm", "averaged_terms"]

Batches = Mapping[On, list[MicroBatch]]
_STREAMS: dict[On, str] = {"batch": "batch", "held_out": "held-out", "out_of_domain": "out-of-domain"}


class WeightedTerm(NamedTuple):
    """A term that counts in this step, and how much."""

    term: Term
    weight: float


@dataclass
class DataTerms:
    """One chunk of samples on one batch, which may lie in several parts: micro-batches, and other processes.

    A term is a function of the whole batch, but it sees the network only through its scores. They are collected from all
    parts outside the graph, the derivative of the term is taken there, and every part is sent its own slice of it. For
    micro-batches that takes a second pass through the network, for processes one message of the scores.
    """

    stepper: Stepper
    leaves: list[Tensor]
    count: int  # of samples in the chunk
    first: int  # the number of its first sample
    statistics: StepStatistics
    place: TrainingPosition

    def backward(
        self, batches: Batches, terms: Sequence[WeightedTerm], averaged: Mapping[str, AveragedTerm], share: float
    ) -> dict[str, list[Tensor]]:
        """Backpropagate the weighted terms to the leaves; returns by name the numbers whose sum is each one's value.

        The mean loss is that of this process's examples, divided by the number of all; terms are those of all.

        Args:
            batches: the training batch, and the others that terms are taken on.
            terms: those that count.
            averaged: those of them whose derivative is known already, by name.
            share: of the samples of the weights, those in this chunk.
        """
        loss = self.stepper.objective.loss
        values: dict[str, list[Tensor]] = {loss.name: []}
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
                    values[loss.name].append(_times(part.own / part.total, mean.detach()))
                    sums.append(_times(part.own / part.total * share, mean))
                sums += [pieces[term.name].piece(logits, part, index) * (share * weight) for term, weight in here]
                self.stepper.scaler.scale(sum(sums[1:], start=sums[0])).backward()
            values.update({term.name: [pieces[term.name].value] for term, _ in here})
        return values

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
                        scores[term.name].append(_own_scores(term, logits, part))
        return {term.name: _SpreadTerm(term, parts, self.stepper.processes, scores[term.name]) for term in terms}


def _times(factor: float, value: Tensor) -> Tensor:
    return value if factor == 1.0 else value * factor


class _SpreadTerm:
    """A term of a batch in parts: its value, and for each part something with the right gradient."""

    value: Tensor

    def __init__(self, term: Term, parts: list[MicroBatch], processes: Processes, scores: list[TermScores]) -> None:
        self._term, self._parts, self._processes = term, parts, processes
        self._slices: list[TermScores] | None = None
        if scores:
            self.value, self._slices = _sliced_derivative(term, scores, parts, processes)

    def piece(self, logits: Tensor, part: MicroBatch, index: int) -> Tensor:
        scores = _own_scores(self._term, logits, part)
        if self._slices is not None:
            return pulled_back(scores, self._slices[index])
        if self._processes.size == 1:
            value = value_of(self._term, scores, part.weights)
            self.value = value.detach()
            return value
        self.value, slices = _sliced_derivative(self._term, [scores], self._parts, self._processes)
        return pulled_back(scores, slices[0])


class AveragedTerm:
    r"""A term of the averaged probabilities, where the samples of the weights run through the network in several chunks.

    With $\bar p = \frac1R \sum_r p_r$ the gradient of a term $f(\log \bar p)$ is that of
    $\sum_r \big\langle \frac{\partial f}{\partial \log \bar p} \circ \frac{p_r}{R\,\bar p}, \log p_r \big\rangle$ with the
    first factor held constant. The factors stay between 0 and 1 wherever probabilities underflow.
    """

    def __init__(self, term: Term, parts: list[MicroBatch], log_probs: list[Tensor], processes: Processes) -> None:
        self._log_probs = log_probs
        leaves = [each.detach().requires_grad_() for each in log_probs]
        with torch.enable_grad():
            scores = [_own_scores(term, leaf, part) for leaf, part in zip(leaves, parts, strict=True)]
            self.value, slices = _sliced_derivative(term, scores, parts, processes)
            sums = [pulled_back(own, slopes) for own, slopes in zip(scores, slices, strict=True)]
        total = sum(sums[1:], start=sums[0])
        self._gradients = tuple(torch.zeros_like(leaf) for leaf in leaves)
        if total.requires_grad:
            self._gradients = torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)

    def piece(self, logits: Tensor, part: MicroBatch, index: int) -> Tensor:
        """For one chunk of samples, something with the right gradient: its mean over the chunk."""
        own = widened(logits).log_softmax(-1)
        factors = (own.detach() - self._log_probs[index]).exp() * self._gradients[index]
        return (factors * own).sum((-2, -1)).mean()


def averaged_terms(
    chunks: Iterable[DataTerms], samples: int, batches: Batches, terms: Sequence[WeightedTerm], processes: Processes
) -> dict[str, AveragedTerm]:
    """The terms of the averaged probabilities by name, from a pass without gradient over all chunks of samples."""
    chosen = [each.term for each in terms if each.term.of == "predictive"]
    sums: dict[On, list[Tensor]] = {}
    with torch.no_grad():
        for data in chunks:
            for on in dict.fromkeys(term.on for term in chosen):
                own = [_log_sum(data.logits(part, index, on, update=False)) for index, part in enumerate(batches[on])]
                sums[on] = [torch.logaddexp(*pair) for pair in zip(sums[on], own, strict=True)] if on in sums else own
    log_probs = {on: [each - math.log(samples) for each in own] for on, own in sums.items()}
    return {term.name: AveragedTerm(term, batches[term.on], log_probs[term.on], processes) for term in chosen}


def _log_sum(logits: Tensor) -> Tensor:
    """The logarithms of the probabilities summed over the samples of a chunk."""
    own = widened(logits).log_softmax(-1)
    return own if own.dim() == 2 else own.logsumexp(0)


def _own_scores(term: Term, logits: Tensor, part: MicroBatch) -> TermScores:
    """The scores of those examples of a part that count."""
    targets = None if term.on == "out_of_domain" else part.targets
    return tuple(score[..., : part.own] for score in scores_of(term, logits, targets))


def _sliced_derivative(
    term: Term, scores: list[TermScores], parts: list[MicroBatch], processes: Processes
) -> tuple[Tensor, list[TermScores]]:
    """The term of the scores of all parts and processes, and its derivative with respect to those of each part here."""
    whole = tuple(torch.cat(pieces, dim=-1) for pieces in zip(*scores, strict=True))
    counts = [part.weights[: part.own] for part in parts if part.weights is not None]
    sizes = processes.sizes(parts[0].total)
    value, gradients = derivative(term, whole, sizes, processes, torch.cat(counts) if counts else None)
    lengths = [each[0].shape[-1] for each in scores]
    return value, list(zip(*(torch.split_with_sizes(each, lengths, dim=-1) for each in gradients), strict=True))
