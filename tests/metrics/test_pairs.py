"""Confidence and correctness alone: what they tell is what all probabilities tell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from tests.metrics.simulated import classifier

import calibayes as cb
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import METRICS, evaluate
from calibayes.metrics.pairs import NEED_ALL_PROBABILITIES

PROBS, TARGETS = classifier(300, 0.8, seed=0, classes=5)
R, C = PROBS.max(-1).values, PROBS.argmax(-1) == TARGETS
OF_ALL_CLASSES = {*NEED_ALL_PROBABILITIES, "nll", "brier"}


@pytest.mark.parametrize("weights", [None, torch.linspace(0.1, 2.0, 300, dtype=torch.float64)], ids=["plain", "weighted"])
def test_pairs_have_the_scores_and_intervals_of_the_whole(weights: torch.Tensor | None) -> None:
    whole = evaluate(PROBS, TARGETS, weights=weights, replicates=50)
    pairs = evaluate(confidence=R, correct=C, weights=weights, replicates=50)
    for metric in METRICS:
        if metric.name not in OF_ALL_CLASSES:
            assert getattr(pairs, metric.name) == getattr(whole, metric.name), metric.name
            assert pairs.intervals.get(metric.name) == whole.intervals.get(metric.name), metric.name
    assert min(R) < 0.5, "an answer may be less sure than its contrary"


def test_nll_and_brier_are_those_of_right_and_wrong() -> None:
    scores = evaluate(confidence=R, correct=C, intervals=False)
    r, c = R.numpy(), C.numpy()
    assert scores.nll == pytest.approx(-np.mean(np.log(np.where(c, r, 1 - r))))
    assert scores.brier == pytest.approx(np.mean(2 * (c - r) ** 2))


def test_what_needs_all_probabilities_is_unknown_and_said_to_be() -> None:
    scores = evaluate(confidence=R, correct=C, replicates=50)
    assert all(math.isnan(getattr(scores, name)) and name not in scores.intervals for name in NEED_ALL_PROBABILITIES)
    assert scores.per_class == ()
    assert not {metric.name for metric in scores.metrics} & set(NEED_ALL_PROBABILITIES)
    assert str(scores).endswith("need the probabilities of all classes.")


def test_lists_arrays_and_a_predictive_are_the_same() -> None:
    expected = evaluate(PROBS, TARGETS, intervals=False)
    predictive = cb.Predictive(PROBS, torch.zeros(300))
    for probs in (PROBS.tolist(), PROBS.numpy(), predictive):
        assert cb.evaluate(probs, TARGETS.tolist(), intervals=False) == expected
    assert repr(evaluate(confidence=R.tolist(), correct=[int(c) for c in C], intervals=False)) == repr(
        evaluate(confidence=R, correct=C, intervals=False)
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "but got none of them"),
        ({"confidence": [0.5]}, "but got confidence"),
        ({"confidence": [0.5], "correct": [1], "probs": [[0.5, 0.5]]}, "but got probs, confidence and correct"),
        ({"confidence": [0.5, 93.0], "correct": [1, 0]}, "per cent by 100, but value 1 is 93"),
        ({"confidence": [0.5, math.nan], "correct": [1, 0]}, "but value 1 is nan"),
        ({"confidence": [0.5], "correct": [2]}, "0 or 1 .* value 0 is 2"),
        ({"confidence": [0.5], "correct": [1, 0]}, "one length, but got 1 and 2"),
        ({"confidence": [], "correct": []}, r"shape \[0\]"),
        ({"confidence": ["a"], "correct": [1]}, "hold numbers"),
        ({"confidence": 0.5, "correct": [1]}, "but got float"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        evaluate(**given)


def test_the_top_1_accuracy_is_not_shown_beside_the_accuracy() -> None:
    scores = evaluate(torch.tensor([[0.9, 0.1], [0.3, 0.7]]), torch.tensor([0, 0]), intervals=False)
    assert "top-1" not in str(scores)
    assert str(scores).count("accuracy ") == 2  # the accuracy, and the coverage at one
    assert "top-4 accuracy" in str(evaluate(PROBS, TARGETS, intervals=False))
