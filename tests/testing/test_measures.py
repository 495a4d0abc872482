"""The library's own measures pass the checks, and faulty ones are found out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

import calibayes as cb
from calibayes.calibration import confidence, correctness

MEASURES = [
    cb.WMMCE(),
    cb.WMMCE(mode="hard"),
    cb.WMMCE(kernel_width=0.01),
    cb.MMCE(),
    cb.MMCE(tau_r=0.1, tau_c=0.1),
    cb.DECE(),
    cb.DECE(bins=5, temperature=0.1),
]


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_they_pass(measure: Any) -> None:
    cb.testing.check_measure(measure)


def test_that_of_the_reference_code_has_no_copies() -> None:
    """It divides by a group's size twice, so a copied batch has another value."""
    measure = cb.WMMCE(normalization="reference")
    with pytest.raises(AssertionError, match=r"fails the check 'weights'.*compared with copies"):
        cb.testing.check_measure(measure)
    cb.testing.check_measure(measure, skip=("weights",))


@dataclass(frozen=True)
class Squared:
    """The squared gap of mean confidence and accuracy: sound."""

    def scores(self, probs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return confidence(probs, check=False), correctness(probs, targets, check=False)

    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        share = torch.ones_like(r) if weights is None else weights
        share = share / share.sum(-1, keepdim=True)
        return (share * (c - r)).sum(-1).square()


class Root(Squared):
    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        return super().value(r, c, weights).sqrt()  # the gradient at zero is infinite


class OverAll(Squared):
    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        return super().value(r, c, weights).mean().expand(r.shape[:-1])


class NoWeights(Squared):
    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        return super().value(r, c)


class InOrder(Squared):
    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        return super().value(r, c, weights) + ((r[..., 0] - c[..., 0]).square() if weights is None else 0)


class Detached(Squared):
    def value(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        return super().value(r.detach(), c, weights)


@dataclass(frozen=True)
class Nameless(Squared):
    about: object = field(default_factory=object)


FAULTS = [
    (Root(), "finite_for_every_batch", "the gradient for"),
    (OverAll(), "leading_axes", "among several"),
    (NoWeights(), "weights", "compared with copies"),
    (InOrder(), "weights|order", "differs"),
    (Detached(), "gradient", "in confidence 0, by differences"),
    (Nameless(), "repr", "frozen dataclass"),
]


def test_a_sound_one_passes() -> None:
    cb.testing.check_measure(Squared())


@pytest.mark.parametrize(("measure", "check", "problem"), FAULTS)
def test_faults_are_found(measure: Any, check: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=f"(?s)fails the check '({check})': .*{problem}"):
        cb.testing.check_measure(measure)
