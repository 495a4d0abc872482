"""Properties of all predictions: any number of classes and examples, ties, zeros and ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibayes.metrics import METRICS, Stream, evaluate

Case = tuple[npt.NDArray[Any], npt.NDArray[np.int64]]


@st.composite
def predictions(draw: st.DrawFn) -> Case:
    """Rows of a few kinds, so that there are many ties; some of them certain."""
    classes = draw(st.sampled_from([2, 3, 5, 10, 100, 1000]))
    n = draw(st.integers(1, 40))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = generator.dirichlet(np.full(classes, draw(st.sampled_from([0.01, 0.3, 1.0]))), size=draw(st.integers(1, 4)))
    certain = np.eye(classes)[generator.integers(classes, size=2)]
    even = np.full((1, classes), 1 / classes)
    rows = np.concatenate((kinds, certain, even))[generator.integers(len(kinds) + 3, size=n)]
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return rows.astype(dtype), generator.integers(classes, size=n)


@settings(max_examples=60, deadline=None)
@given(predictions())
def test_values_are_within_their_bounds_and_agree_with_each_other(case: Case) -> None:
    scores = evaluate(*case, intervals=False)
    for metric in METRICS:
        value = getattr(scores, metric.name)
        undefined = metric.name in ("kce_p_value", "kce_squared") and scores.n == 1
        assert undefined or not math.isnan(value), metric.name
    slack = 1e-6
    assert 0 <= scores.wmmce <= 2  # a vector for the right decisions and one for the wrong, each of length at most 1
    for name in ("accuracy", "top_k", "confidence", "ece", "ece_equal_mass", "ece_classwise", "mce", "smooth_ece", "aurc",
                 "coverage_at_target", "brier_uncertainty", "rms_calibration_error"):  # fmt: skip
        assert -slack <= getattr(scores, name) <= 1 + slack, name
    assert abs(scores.overconfidence) - slack <= scores.ece <= scores.rms_calibration_error + slack
    assert scores.rms_calibration_error <= scores.mce + slack
    assert abs(scores.overconfidence) - slack <= scores.ece_equal_mass
    assert scores.accuracy <= scores.top_k + slack
    assert 0 <= scores.brier <= 2 + slack
    assert scores.nll >= 0
    assert scores.ece_squared_debiased <= scores.rms_calibration_error**2 + slack


@settings(max_examples=25, deadline=None)
@given(predictions())
def test_intervals_exist_and_are_in_order(case: Case) -> None:
    scores = evaluate(*case, replicates=50)
    for name, (low, high) in scores.intervals.items():
        if scores.n > 1 or name in ("accuracy", "top_k"):
            assert low <= high, name
            assert low >= -1 - 1e-9, name


@settings(max_examples=30, deadline=None)
@given(predictions(), st.randoms(use_true_random=False))
def test_the_order_of_examples_does_not_matter_and_a_stream_is_the_whole(case: Case, random: Any) -> None:
    probs, targets = case
    order = list(range(len(targets)))
    random.shuffle(order)
    whole, mixed = evaluate(probs, targets, intervals=False), evaluate(probs[order], targets[order], intervals=False)
    stream = Stream()
    for index in order:
        stream.update(probs[index : index + 1], targets[index : index + 1])
    batched = stream.scores(intervals=False)
    for name, value in whole.values.items():
        assert mixed.values[name] == pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True), name
        if name == "kce_p_value":  # other draws where examples are gathered into cells
            continue
        assert batched.values[name] == pytest.approx(value, rel=2e-2, abs=2e-3, nan_ok=True), name


@settings(max_examples=30, deadline=None)
@given(predictions())
def test_renaming_classes_changes_only_what_breaks_ties(case: Case) -> None:
    probs, targets = case
    if np.any((probs == probs.max(-1, keepdims=True)).sum(-1) > 1):
        return
    turned, labels = probs[:, ::-1].copy(), probs.shape[1] - 1 - targets
    whole, other = evaluate(probs, targets, intervals=False), evaluate(turned, labels, intervals=False)
    for name, value in whole.values.items():
        if name != "top_k":  # zeros are tied too
            assert other.values[name] == pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True), name
