"""Accuracy, NLL and Brier score against hand-computed values and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from calibayes.metrics import accuracy, brier, nll


def test_accuracy_takes_the_first_of_tied_classes() -> None:
    probs = torch.tensor([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [1 / 3, 1 / 3, 1 / 3]])
    assert accuracy(probs, torch.tensor([0, 1, 0])) == 1.0
    assert accuracy(probs, torch.tensor([1, 2, 1])) == 0.0


def test_nll_by_hand() -> None:
    probs = torch.tensor([[0.5, 0.5], [0.2, 0.8]], dtype=torch.float64)
    assert nll(probs, torch.tensor([0, 1])) == pytest.approx((math.log(2) - math.log(0.8)) / 2, abs=1e-15)


def test_probability_zero_on_the_true_class_is_infinite() -> None:
    probs = torch.tensor([[1.0, 0.0]] * 1000)
    targets = torch.zeros(1000, dtype=torch.long)
    assert nll(probs, targets) == 0.0
    assert math.copysign(1, nll(probs, targets)) == 1
    targets[17] = 1
    assert nll(probs, targets) == math.inf


def test_brier_by_hand() -> None:
    probs = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], dtype=torch.float64)
    first = 0.3**2 + 0.2**2 + 0.1**2
    second = 0.9**2 + 0.1**2 + 0.8**2
    assert brier(probs, torch.tensor([0, 0])) == pytest.approx((first + second) / 2, abs=1e-15)


def test_brier_runs_from_zero_to_two() -> None:
    probs = torch.eye(3)
    assert brier(probs, torch.arange(3)) == 0.0
    assert brier(probs, torch.tensor([1, 2, 0])) == 2.0


@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_uniform_probabilities(classes: int) -> None:
    probs = torch.full((5, classes), 1 / classes, dtype=torch.float64)
    targets = torch.arange(5) % classes
    assert nll(probs, targets) == pytest.approx(math.log(classes), abs=1e-12)
    assert brier(probs, targets) == pytest.approx(1 - 1 / classes, abs=1e-12)


def test_brier_leaves_float64_input_as_it_was() -> None:
    probs = torch.tensor([[0.7, 0.3]], dtype=torch.float64)
    brier(probs, torch.tensor([0]))
    assert probs.tolist() == [[0.7, 0.3]]


def test_brier_over_many_blocks_equals_one_expression() -> None:
    generator = torch.Generator().manual_seed(0)
    probs = torch.randn(2_500, 1_000, generator=generator).softmax(-1)
    targets = torch.randint(1_000, (2_500,), generator=generator)
    whole = (probs.double() - torch.nn.functional.one_hot(targets, 1_000)).square().sum(-1).mean().item()
    assert brier(probs, targets) == pytest.approx(whole, abs=1e-12)


def test_true_probabilities_minimise_both_scores() -> None:
    generator = torch.Generator().manual_seed(4)
    logits = torch.randn(50_000, 5, generator=generator, dtype=torch.float64)
    targets = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
    for score in (nll, brier):
        true, sharper, flatter = (score((scale * logits).softmax(-1), targets) for scale in (1.0, 1.5, 0.67))
        assert true < sharper
        assert true < flatter


@given(n=st.integers(1, 50), classes=st.sampled_from([2, 3, 10, 1000]), seed=st.integers(0, 2**31))
@settings(max_examples=40)
def test_equals_scikit_learn(n: int, classes: int, seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.ones(classes), n)
    probs /= probs.sum(-1, keepdims=True)
    targets = generator.integers(classes, size=n)
    labels = np.arange(classes)
    assert accuracy(probs, targets) == metrics.accuracy_score(targets, probs.argmax(-1))
    assert nll(probs, targets) == pytest.approx(metrics.log_loss(targets, probs, labels=labels), rel=1e-9)
    # scale_by_half=False is the sum over classes, for any number of them.
    reference = metrics.brier_score_loss(targets, probs, labels=labels, scale_by_half=False)
    assert brier(probs, targets) == pytest.approx(reference, rel=1e-9)


@pytest.mark.parametrize("score", [accuracy, nll, brier])
def test_numpy_equals_torch_and_half_is_close(score) -> None:  # type: ignore[no-untyped-def]
    generator = torch.Generator().manual_seed(5)
    probs = torch.randn(100, 7, generator=generator).softmax(-1)
    targets = torch.randint(7, (100,), generator=generator)
    value = score(probs, targets)
    assert isinstance(value, float)
    assert score(probs.numpy(), targets.numpy()) == value
    assert score(probs.half(), targets) == pytest.approx(value, abs=0.02)
