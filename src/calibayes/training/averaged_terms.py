r"""Terms of the averaged probabilities where the samples of the weights run through the network in several chunks.

With $\bar p = \frac1R \sum_r p_r$ the gradient of a term $f(\log \bar p)$ is that of
$\sum_r \big\langle \frac{\partial f}{\partial \log \bar p} \circ \frac{p_r}{R\,\bar p}, \log p_r \big\rangle$ with the first
factor held constant. A first pass without gradient finds $\log \bar p$; the factors stay between 0 and 1 wherever
probabilities underflow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from calibayes.distributed import Processes
from calibayes.objective.losses import widened
from calibayes.objective.term_gradient import pulled_back
from calibayes.objective.terms import On, Term
from calibayes.training.data_terms import Batches, DataTerms, WeightedTerm, own_scores, sliced_derivative
from calibayes.training.training_position import MicroBatch

__all__ = ["AveragedTerm", "averaged_terms"]


class AveragedTerm:
    """A term whose derivative with respect to the averaged log-probabilities of each part is known."""

    def __init__(self, term: Term, parts: list[MicroBatch], log_probs: list[Tensor], processes: Processes) -> None:
        self._log_probs = log_probs
        leaves = [each.detach().requires_grad_() for each in log_probs]
        with torch.enable_grad():
            scores = [own_scores(term, leaf, part) for leaf, part in zip(leaves, parts, strict=True)]
            self.value, slices = sliced_derivative(term, scores, parts, processes)
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
    places: list[On] = list(dict.fromkeys(term.on for term in chosen))
    sums: dict[On, list[Tensor]] = {}
    with torch.no_grad():
        for data in chunks:
            for on in places:
                found = [_log_sum(data.logits(part, index, on, update=False)) for index, part in enumerate(batches[on])]
                before = sums.get(on)
                sums[on] = found if before is None else [torch.logaddexp(*pair) for pair in zip(before, found, strict=True)]
    log_probs = {on: [each - math.log(samples) for each in found] for on, found in sums.items()}
    return {term.name: AveragedTerm(term, batches[term.on], log_probs[term.on], processes) for term in chosen}


def _log_sum(logits: Tensor) -> Tensor:
    """The logarithms of the probabilities summed over the samples of a chunk."""
    own = widened(logits).log_softmax(-1)
    return own if own.dim() == 2 else own.logsumexp(0)
