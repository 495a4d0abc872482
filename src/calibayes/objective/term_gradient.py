"""The value of a term of a batch in several pieces, and its derivative with respect to each piece's scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from calibayes.calibration.scores import widened
from calibayes.distributed import Processes
from calibayes.errors import InvalidArgumentError
from calibayes.objective.terms import Term
from calibayes.schedules import value_at

__all__ = ["derivative", "log_average", "pulled_back", "scores_of", "value_of", "weight_of", "with_gradient"]

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
