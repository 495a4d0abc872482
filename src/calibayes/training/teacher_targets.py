"""A teacher's predictions as targets, and the loss and the term that a student learns them by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from calibayes.objective.losses import Loss, widened
from calibayes.objective.terms import Of, On, Term
from calibayes.posterior.distilled import log_evidence
from calibayes.predictive import Predictive

__all__ = ["EpistemicShare", "TeacherCrossEntropy", "teacher_targets"]


def teacher_targets(predictive: Predictive) -> Tensor:
    """A teacher's probabilities, and its epistemic and aleatoric uncertainty in nats: targets ``[n, K + 2]``."""
    uncertainties = torch.stack([predictive.epistemic, predictive.aleatoric.clamp_min(0)], -1)
    return torch.cat([predictive.probs, uncertainties], -1)


@final
@dataclass(frozen=True)
class TeacherCrossEntropy(Loss):
    r"""The cross-entropy to a teacher's probabilities, $-\sum_y t_y \log p_y$: the KL from them, up to a constant."""

    name: str = field(default="teacher_cross_entropy", init=False, repr=False)

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The losses ``[..., n]`` of logits ``[..., n, K]`` and `teacher_targets`."""
        return -(targets[..., :-2] * widened(logits).log_softmax(-1)).sum(-1)

    def mean(self, logits: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """The mean over examples and samples, each example times its weight ``[n]``."""
        each = self(logits, targets)
        return (each if weights is None else each * weights.to(each)).mean()


@final
@dataclass(frozen=True)
class EpistemicShare(Term):
    r"""The error of a student's split of the entropy into epistemic and aleatoric: $-E \log s - A \log (1 - s)$ on average.

    $E$ and $A$ are the teacher's uncertainties and $s$ is the student's share. The best share is $E/(E+A)$, or the ratio of
    their means where the student cannot tell examples apart; an example that the teacher is sure of does not count.
    """

    factor: float = 1.0
    name: str = field(default="epistemic_share", init=False, repr=False)
    on: On = field(default="batch", init=False, repr=False)
    of: Of = field(default="samples", init=False, repr=False)

    def weight(self, step: int, batch_size: int) -> float:
        """The weight beside the mean loss."""
        return self.factor

    def scores(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        """The error ``[..., n]`` of each example."""
        evidence = log_evidence(widened(logits))
        return (targets[..., -2] * F.softplus(evidence) + targets[..., -1] * F.softplus(-evidence),)

    def value(self, *scores: Tensor, weights: Tensor | None = None) -> Tensor:
        """The mean over examples."""
        (each,) = scores
        return each.mean(-1) if weights is None else (each * weights).sum(-1) / weights.sum(-1)
