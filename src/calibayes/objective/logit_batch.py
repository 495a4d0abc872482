"""The logits of one batch in a user's own training loop, and the objective's values for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from calibayes.checks import check_logits
from calibayes.distributed import Processes
from calibayes.objective.losses import Loss
from calibayes.objective.objective_checks import check_data
from calibayes.objective.term_gradient import derivative, pulled_back, scores_of, value_of, weight_of, with_gradient
from calibayes.objective.terms import On, Term

__all__ = ["LogitBatch"]


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
