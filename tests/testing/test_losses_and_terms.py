"""The library's own losses and terms pass the checks, and faulty ones are found out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import calibayes as cb
from calibayes import objective

LOSSES = [
    objective.CrossEntropy(),
    objective.CrossEntropy(label_smoothing=0.1),
    objective.Focal(gamma=3.0),
    objective.Focal(gamma=0.5),
    objective.Focal(schedule="flsd"),
    torch.nn.MultiMarginLoss(reduction="none"),
]
TERMS = [
    objective.Calibration(),
    objective.Calibration(cb.MMCE(), of="predictive"),
    objective.Calibration(cb.DECE(), lam=1.0, scale="mean", on="held_out"),
    objective.ConfidenceMinimization(weight=0.5),
    objective.ConfidenceMinimization(weight=0.5, of="predictive"),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_pass(loss: Any) -> None:
    cb.testing.check_loss(loss)


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_terms_pass(term: Any) -> None:
    cb.testing.check_term(term)


def averaged(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits, targets)


def overflowing(logits: Tensor, targets: Tensor) -> Tensor:
    return (logits.exp().sum(-1) - logits.gather(-1, targets[:, None]).squeeze(-1).exp()).log1p()


def of_the_batch(logits: Tensor, targets: Tensor) -> Tensor:
    each = F.cross_entropy(logits, targets, reduction="none")
    return each * each.detach().mean()


def half_a_gradient(logits: Tensor, targets: Tensor) -> Tensor:
    each = F.cross_entropy(logits, targets, reduction="none")
    return each / 2 + each.detach() / 2


@pytest.mark.parametrize(
    ("loss", "check", "problem"),
    [
        (averaged, "one_number_per_example", r"shape \[\]"),
        (overflowing, "finite_for_every_batch", "not finite"),
        (of_the_batch, "examples_are_independent", "first five"),
        (half_a_gradient, "gradient", "by differences"),
    ],
)
def test_faults_of_losses_are_found(loss: Any, check: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=f"(?s)^{loss.__name__} fails the check '{check}': .*{problem}"):
        cb.testing.check_loss(loss)


@dataclass(frozen=True)
class Confidence(objective.Term):
    """The squared mean confidence: sound."""

    name = "confidence_squared"
    on = "batch"
    of = "samples"

    def weight(self, step: int, batch_size: int) -> float:
        return 0.5

    def scores(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        return (logits.double().softmax(-1).amax(-1),)

    def value(self, *scores: Tensor, weights: Tensor | None = None) -> Tensor:
        share = torch.ones_like(scores[0]) if weights is None else weights
        mean: Tensor = (share * scores[0]).sum(-1) / share.sum(-1)
        return mean.square()


class OfRawLogits(Confidence):
    def scores(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        return (logits.double().amax(-1),)


class OfTheBatch(Confidence):
    def scores(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        (sure,) = super().scores(logits, targets)
        return (sure - sure.mean(-1, keepdim=True),)


class NoWeights(Confidence):
    def value(self, *scores: Tensor, weights: Tensor | None = None) -> Tensor:
        return super().value(*scores)


class NoEffect(Confidence):
    def weight(self, step: int, batch_size: int) -> float:
        return 0.0


def test_a_sound_term_passes() -> None:
    cb.testing.check_term(Confidence())


@pytest.mark.parametrize(
    ("term", "check", "problem"),
    [
        (OfRawLogits(), "scores_are_independent", "only their softmax"),
        (OfTheBatch(), "scores_are_independent", "first five"),
        (NoWeights(), "weights", "compared with copies"),
        (NoEffect(), "training", "training without it"),
    ],
)
def test_faults_of_terms_are_found(term: Any, check: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=f"(?s)fails the check '{check}': .*{problem}"):
        cb.testing.check_term(term)
