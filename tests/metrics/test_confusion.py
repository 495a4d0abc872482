"""The confusion matrix and the rates of single classes, against scikit-learn, and their intervals against the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from tests.metrics.simulated import classifier

from calibayes.metrics import class_rates, confusion_matrix
from calibayes.metrics.confusion import most_confused


@given(st.integers(2, 7), st.integers(1, 80), st.integers(0, 10_000), st.booleans())
def test_values_are_those_of_scikit_learn(classes: int, n: int, seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    probs, targets = rng.dirichlet(np.ones(classes), n), rng.integers(classes, size=n)
    weights = rng.uniform(0.5, 3, n) if weighted else None
    decided, labels = probs.argmax(1), list(range(classes))
    expected = sk.confusion_matrix(targets, decided, labels=labels, sample_weight=weights)
    assert np.allclose(confusion_matrix(probs, targets, weights=weights), expected)
    precision, recall, f1, support = sk.precision_recall_fscore_support(
        targets, decided, labels=labels, sample_weight=weights, zero_division=np.nan
    )
    found = class_rates(probs, targets, weights=weights)
    assert np.allclose([each.precision for each in found], precision, equal_nan=True)
    assert np.allclose([each.recall for each in found], recall, equal_nan=True)
    assert np.allclose([each.support for each in found], support)
    seen = [place for place, each in enumerate(found) if each.support or each.predicted]
    assert np.allclose([found[place].f1 for place in seen], f1[seen])
    for each in found:
        for name in ("precision", "recall", "f1"):
            value, (low, high) = getattr(each, name), getattr(each, f"{name}_interval")
            assert (0 <= low <= value + 1e-12 and value <= high + 1e-12 <= 1 + 1e-9) or all(map(math.isnan, (value, low, high)))


def test_unweighted_counts_are_integers() -> None:
    probs, targets = classifier(50, 1.0, 0)
    assert confusion_matrix(probs, targets).dtype == torch.int64
    assert int(confusion_matrix(probs, targets).sum()) == 50


@pytest.mark.parametrize("n", [60, 1000])
def test_intervals_hold_the_truth_as_often_as_they_say(n: int) -> None:
    many, labels = classifier(400_000, 1.0, 12345)
    truth = class_rates(many, labels)
    names = ("precision", "recall", "f1")
    held, trials = dict.fromkeys(names, 0), 0
    for seed in range(400):
        found = class_rates(*classifier(n, 1.0, seed), level=0.9)
        for name in names:
            ends = [getattr(each, f"{name}_interval") for each in found]
            held[name] += sum(low <= getattr(true, name) <= high for true, (low, high) in zip(truth, ends, strict=True))
        trials += len(found)
    for name, count in held.items():
        assert count / trials == pytest.approx(0.9, abs=0.025), name


def test_the_weight_of_copies_does_not_narrow_intervals() -> None:
    probs, targets = classifier(200, 1.0, 0)
    plain, scaled = (class_rates(probs, targets, weights=np.full(200, weight)) for weight in (1.0, 50.0))
    for one, other in zip(plain, scaled, strict=True):
        assert other.f1_interval == pytest.approx(one.f1_interval)
        assert other.recall_interval == pytest.approx(one.recall_interval)


def test_most_confused_pairs_are_sorted_and_leave_out_hits() -> None:
    counts = torch.tensor([[90, 3, 7], [0, 5, 5], [0, 0, 1]])
    found = most_confused(counts)
    assert [(pair.true, pair.predicted, pair.cases) for pair in found] == [(0, 2, 7), (1, 2, 5), (0, 1, 3)]
    assert [pair.share for pair in found] == pytest.approx([0.07, 0.5, 0.03])
    assert most_confused(counts, 2) == found[:2]
    assert most_confused(torch.eye(3, dtype=torch.int64)) == []
