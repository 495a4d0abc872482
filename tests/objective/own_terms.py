"""Terms of one's own, for tests."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from calibayes.objective import Term
from calibayes.objective.terms import Of, On


@dataclass(frozen=True)
class Spread(Term):
    """The variance over the batch of three scores' product: no sum over examples, nor one of two scores."""

    strength: float = 2.0
    on: On = "batch"
    of: Of = "samples"
    name: str = "spread"

    def weight(self, step: int, batch_size: int) -> float:
        return self.strength / (1 + step)

    def scores(self, logits: Tensor, targets: Tensor | None) -> tuple[Tensor, ...]:
        probs = logits.softmax(-1)
        chosen = probs[..., 0]
        if targets is not None:
            chosen = probs.gather(-1, targets.expand(probs.shape[:-1]).unsqueeze(-1)).squeeze(-1)
        return probs.square().sum(-1), chosen, probs.amin(-1)

    def value(self, *scores: Tensor, weights: Tensor | None = None) -> Tensor:
        product = torch.stack(scores).sin().prod(0) * 10
        weights = torch.ones_like(product) if weights is None else weights
        share = weights / weights.sum(-1, keepdim=True)
        mean = (share * product).sum(-1, keepdim=True)
        return (share * (product - mean).square()).sum(-1)
