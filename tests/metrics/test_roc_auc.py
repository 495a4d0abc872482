"""The AUC against scikit-learn, and its interval against the truth."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from calibayes.errors import InvalidProbabilitiesError
from calibayes.metrics import roc_auc, roc_auc_interval


def binormal(positive: int, negative: int, area: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of two classes, normal with unit variance, whose true AUC is known."""
    shift = math.sqrt(2) * NormalDist().inv_cdf(area)
    scores = np.random.default_rng(seed).normal(size=positive + negative)
    targets = np.repeat([1, 0], [positive, negative])
    return 1 / (1 + np.exp(-(scores + shift * targets))), targets


@given(st.integers(2, 60), st.integers(0, 10_000), st.booleans(), st.integers(1, 3))
def test_the_value_is_that_of_scikit_learn(n: int, seed: int, weighted: bool, digits: int) -> None:
    rng = np.random.default_rng(seed)
    column, targets = rng.uniform(size=n).round(digits), rng.integers(2, size=n)  # rounded: many ties
    targets[:2] = 0, 1
    weights = rng.uniform(0.5, 3, n) if weighted else None
    expected = roc_auc_score(targets, column, sample_weight=weights)
    assert roc_auc(column, targets, weights=weights) == pytest.approx(expected)
    assert roc_auc(np.stack((1 - column, column), -1), targets, weights=weights) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("positive", "negative", "area"), [(20, 40, 0.7), (30, 30, 0.95), (200, 1000, 0.8), (100, 100, 0.99), (10, 15, 0.95)]
)
def test_the_interval_holds_the_truth_as_often_as_it_says(positive: int, negative: int, area: float) -> None:
    found = [roc_auc_interval(*binormal(positive, negative, area, seed)) for seed in range(1000)]
    share = np.mean([low <= area <= high for low, high in found])
    assert 0.93 <= share <= 0.99


def test_a_perfect_ranking_is_not_certain() -> None:
    few, many = (roc_auc_interval(np.repeat([0.2, 0.9], [n, n]), np.repeat([0, 1], [n, n])) for n in (5, 500))
    assert few.high == many.high == 1
    assert 0.5 < few.low < 0.9 < 0.98 < many.low < 1
    reverse = roc_auc_interval(np.repeat([0.9, 0.2], [5, 5]), np.repeat([0, 1], [5, 5]))
    assert reverse == pytest.approx((0, 1 - few.low))


def test_the_order_of_the_classes_mirrors_it() -> None:
    column, targets = binormal(30, 50, 0.8, 0)
    low, high = roc_auc_interval(column, targets)
    assert roc_auc_interval(1 - column, 1 - targets) == pytest.approx((low, high))
    assert roc_auc_interval(1 - column, targets) == pytest.approx((1 - high, 1 - low))


def test_weights_scale_without_effect_and_zero_leaves_out() -> None:
    column, targets = binormal(30, 50, 0.8, 0)
    plain = roc_auc_interval(column, targets)
    assert roc_auc_interval(column, targets, weights=np.full(80, 7.0)) == pytest.approx(plain)
    more, other = np.concatenate((column, 1 - column)), np.concatenate((targets, targets))
    weights = np.repeat([1.0, 0.0], 80)
    assert roc_auc_interval(more, other, weights=weights) == pytest.approx(plain)


def test_one_class_alone_has_no_auc() -> None:
    assert math.isnan(roc_auc(np.array([0.2, 0.7]), np.array([1, 1])))
    assert all(map(math.isnan, roc_auc_interval(np.array([0.2, 0.7]), np.array([1, 1]))))


def test_several_classes_are_rejected_with_advice() -> None:
    probs = torch.full((4, 3), 1 / 3)
    with pytest.raises(InvalidProbabilitiesError, match=r"but got 3.*probs\[:, k\]"):
        roc_auc(probs, torch.tensor([0, 1, 2, 0]))
