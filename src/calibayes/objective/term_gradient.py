"""The values of terms of a batch in several pieces, and their derivatives with respect to each piece's scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from calibayes.calibration.scores import widened
from calibayes.checks import check_logits
from calibayes.distributed import Processes
from calibayes.errors import InvalidArgumentError
from calibayes.objective.losses import Loss
from calibayes.objective.objective_checks import check_data
from calibayes.objective.terms import On, Term
from calibayes.schedules import value_at

__all__ = ["LogitBatch", "derivative", "log_average", "pulled_back", "scores_of", "value_of", "weight_of", "with_gradient"]

TermScores = tuple[Tensor, ...]


def weight_of(term: Term, step: int, batch_size: int) -> float:
    """The weight of a term at an optimiser step, checked to be a non-negative finite number."""
    return value_at(term.weight(step, batch_size), step, f"{term.name}.weight")


def scores_of(term: Term, logits: Tensor, targets: Tensor | None) -> TermScores:
    """The scores ``[..., n]`` of logits ``[..., n, K]``; those of the average over samples for a term of the predictive."""
    if term.of == "predictive" and logits.dim() > 2:
        logits = log_average(logits)
    scores = tuple(term.scores(logits, targets))  # type: ignore[arg-type]
    for score in scores:
        if score.shape != logits.shape[:-1]:
            raise InvalidArgumentError(
                f"Expected every score of the term {term.name!r} to have one number per example, shape "
                f"{list(logits.shape[:-1])}, but one has {list(score.shape)}."
            )
    return scores


def value_of(term: Term, scores: TermScores, weights: Tensor | None = None) -> Tensor:
    """The term of scores ``[..., n]``, averaged over samples of the weights."""
    if weights is None:
        return term.value(*scores).mean()
    return term.value(*scores, weights=weights.to(scores[0]).expand(scores[0].shape)).mean()


def derivative(
    term: Term, scores: TermScores, sizes: Sequence[int], processes: Processes, weights: Tensor | None = None
) -> tuple[Tensor, TermScores]:
    """The term of the scores of all processes, and its derivative with respect to this one's, outside the graph.

    ``sizes`` are the numbers of examples of every process; ``scores`` and their ``weights`` are this process's.
    """
    everyones = None if weights is None else processes.gather(weights, sizes)
    gathered = processes.gather(torch.stack([score.detach() for score in scores]), sizes)
    leaves = tuple(each.detach().requires_grad_() for each in gathered)
    with torch.enable_grad():
        value = value_of(term, leaves, everyones)
    begin = sum(sizes[: processes.rank])
    gradients = tuple(torch.zeros_like(leaf) for leaf in leaves)
    if value.requires_grad:
        gradients = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    return value.detach(), tuple(each[..., begin : begin + sizes[processes.rank]] for each in gradients)


def pulled_back(scores: TermScores, gradients: TermScores) -> Tensor:
    """A number whose gradient is that of a function of the scores with this derivative."""
    first, *others = (((score * gradient).sum()) for score, gradient in zip(scores, gradients, strict=True))
    return sum(others, start=first)


def log_average(logits: Tensor) -> Tensor:
    """The logarithms of the probabilities averaged over all leading axes: ``[n, K]`` of ``[..., n, K]``."""
    rows = widened(logits).log_softmax(-1).reshape(-1, *logits.shape[-2:])
    return rows.logsumexp(0) - math.log(len(rows))


def with_gradient(value: Tensor, source: Tensor) -> Tensor:
    """A number with the value of one and the gradient of another."""
    return value + (source - source.detach())


class LogitBatch:
    """The logits of one batch, of which each process has a part; gradients are multiplied by the number of processes."""

    def __init__(
        self,
        processes: Processes,
        logits: Tensor,
        targets: Tensor,
        held_out: tuple[Tensor, Tensor] | None,
        out_of_domain: Tensor | None,
    ) -> None:
        self.processes = processes
        self.data: dict[On, tuple[Tensor, Tensor | None]] = {"batch": (logits, targets)}
        if held_out is not None:
            self.data["held_out"] = held_out
        if out_of_domain is not None:
            self.data["out_of_domain"] = (out_of_domain, None)
        for here, labels in self.data.values():
            _check(here, labels, some=processes.size == 1)
        self.sizes = self._sizes("batch")

    def mean(self, loss: Loss) -> Tensor:
        """The mean loss of all processes' examples."""
        logits, targets = self.data["batch"]
        assert targets is not None
        if self.processes.size == 1:
            return loss.mean(logits, targets)
        own = loss.sum(logits, targets) / sum(self.sizes)
        whole = own.detach().clone()
        self.processes.sum_([whole])
        return with_gradient(whole, own * self.processes.size)

    def terms(self, terms: Sequence[Term], step: int) -> list[tuple[Term, float, Tensor | None]]:
        """Every term, its weight, and its value unless the weight is zero."""
        check_data(terms, self.data, {"held_out": "held_out", "out_of_domain": "out_of_domain"})
        weights = [weight_of(term, step, sum(self.sizes)) for term in terms]
        return [(term, w, self._value(term) if w > 0 else None) for term, w in zip(terms, weights, strict=True)]

    def _value(self, term: Term) -> Tensor:
        scores = scores_of(term, *self.data[term.on])
        if self.processes.size == 1:
            return value_of(term, scores)
        sizes = self.sizes if term.on == "batch" else self._sizes(term.on)
        value, gradients = derivative(term, scores, sizes, self.processes)
        return with_gradient(value, pulled_back(scores, gradients) * self.processes.size)

    def _sizes(self, on: On) -> list[int]:
        logits, _ = self.data[on]
        own = logits.shape[-2]
        return [own] if self.processes.size == 1 else self.processes.counts(own, logits.device)


def _check(logits: Tensor, targets: Tensor | None, *, some: bool) -> None:
    """Check a batch; the values of labels are looked at only where a GPU need not be waited for."""
    if targets is None:
        rows = logits.shape[-2:-1] if isinstance(logits, Tensor) else ()
        targets = torch.zeros(rows, dtype=torch.int64)
    check_logits(logits, targets, some=some, within=isinstance(targets, Tensor) and targets.device.type == "cpu")
