"""The test of "calibrated": exact, the same in every order, and able to tell."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from tests.metrics.simulated import classifier, says

from calibayes.metrics import Stream, evaluate, kce_p_value
from calibayes.metrics.calibration_test import SMALLEST, rejects


def statistic(r: np.ndarray, c: np.ndarray, w: np.ndarray, width: float = 0.4) -> float:
    """The kernel form over pairs of different examples, by its definition."""
    e = w * (c - r)
    kernel = np.exp(-np.abs(r[:, None] - r[None]) / width)
    np.fill_diagonal(kernel, 0.0)
    return float(e @ kernel @ e)


def pairs(r: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.stack((r, 1 - r), -1), (1 - c).astype(int)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_p_value_is_the_probability_of_as_large_a_statistic(seed: int, weighted: bool) -> None:
    """Of nine examples all 512 outcomes can be listed, each with its probability."""
    generator = np.random.default_rng(seed)
    r = generator.uniform(0.55, 0.95, 9)
    r[1] = r[0]
    c = (generator.random(9) < 0.6).astype(float)
    w = generator.uniform(0.2, 3.0, 9) if weighted else np.ones(9)
    observed, exact = statistic(r, c, w), 0.0
    for outcome in itertools.product((0.0, 1.0), repeat=9):
        drawn = np.array(outcome)
        if statistic(r, drawn, w) >= observed - 1e-9:
            exact += float(np.prod(np.where(drawn > 0, r, 1 - r)))
    found = kce_p_value(*pairs(r, c), weights=w)
    assert found == pytest.approx(exact, abs=0.001 + 4 * math.sqrt(exact * (1 - exact) / 999))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [7, 300, 5000])
def test_the_order_of_the_rows_changes_no_bit(n: int, weighted: bool) -> None:
    generator = np.random.default_rng(n)
    r = np.round(generator.uniform(0.5, 1.0, n), 2)  # full of ties
    probs, targets = pairs(r, (generator.random(n) < r - 0.02).astype(float))
    weights = generator.choice([0.3, 1.0, 2.7], n) if weighted else None
    found = set()
    for _ in range(10):
        order = generator.permutation(n)
        found.add(kce_p_value(probs[order], targets[order], weights=None if weights is None else weights[order]))
    assert len(found) == 1


def test_cells_of_many_examples_tell_what_single_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = torch.rand(6000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for seed, temperature in ((0, 1.0), (1, 1.0), (2, 0.93)):
        probs, targets = classifier(6000, temperature, seed=seed)
        for each in (None, weights):
            in_cells = kce_p_value(probs, targets, weights=each)
            with monkeypatch.context() as patch:
                patch.setattr("calibayes.metrics.calibration_test._SINGLE", 10_000)
                alone = kce_p_value(probs, targets, weights=each)
            assert in_cells == pytest.approx(alone, abs=0.002 + 6 * math.sqrt(alone * (1 - alone) / 999))


@pytest.mark.parametrize("n", [60, 400, 4000])
@pytest.mark.parametrize("shape", ["uniform", "near 1", "few values"])
def test_p_values_of_calibrated_classifiers_are_uniform(shape: str, n: int) -> None:
    runs = 300 if n < 4000 else 80
    found = []
    for seed in range(runs):
        u = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        r = {"uniform": 0.5 + 0.5 * u, "near 1": 1 - 0.2 * u**2, "few values": 0.6 + 0.15 * (3 * u).floor()}[shape]
        found.append(kce_p_value(*says(r, r, seed=10_000 + seed), seed=seed))
    for level in (0.05, 0.2, 0.5, 0.8):
        assert np.mean(np.array(found) <= level) == pytest.approx(level, abs=3.5 * math.sqrt(level * (1 - level) / runs))


def test_weighted_p_values_of_a_calibrated_classifier_are_uniform() -> None:
    """Heavy weights on the confident examples: one weight for all would know the noise wrongly."""
    found = []
    for seed in range(120):
        u = torch.rand(2500, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        probs, targets = says(0.5 + 0.5 * u, 0.5 + 0.5 * u, seed=10_000 + seed)
        found.append(kce_p_value(probs, targets, weights=torch.where(u > 0.9, 30.0, 1.0), seed=seed))
    for level in (0.05, 0.2, 0.5, 0.8):
        assert np.mean(np.array(found) <= level) == pytest.approx(level, abs=3.5 * math.sqrt(level * (1 - level) / 120))


def test_logits_a_third_too_large_are_seen() -> None:
    rejected = sum(kce_p_value(*classifier(2000, 1 / 1.3, seed=seed), seed=seed) <= 0.05 for seed in range(20))
    assert rejected >= 19


def test_a_stream_has_the_p_value_of_its_cells() -> None:
    for temperature, weights in ((1.0, None), (0.97, None), (1.0, torch.linspace(0.1, 5, 8000, dtype=torch.float64))):
        probs, targets = classifier(8000, temperature, seed=3)
        whole = evaluate(probs, targets, weights=weights, intervals=False).kce_p_value
        stream = Stream()
        for start in range(0, 8000, 900):
            part = slice(start, start + 900)
            stream.update(probs[part], targets[part], weights=None if weights is None else weights[part])
        streamed = stream.scores(intervals=False).kce_p_value
        assert streamed == pytest.approx(whole, abs=0.002 + 6 * math.sqrt(whole * (1 - whole) / 999))


def test_certain_and_wrong_is_never_calibrated() -> None:
    """Even where there is one such error, which no pair of examples shows."""
    assert kce_p_value(*pairs(np.ones(10), np.array([0.0] + [1.0] * 9))) == SMALLEST
    assert kce_p_value(*pairs(np.ones(10), np.ones(10))) == 1


def test_one_example_has_no_p_value_and_two_have() -> None:
    assert math.isnan(kce_p_value(np.array([[0.7, 0.3]]), np.array([0])))
    assert kce_p_value(np.array([[0.99, 0.01]] * 2), np.array([1, 1])) == SMALLEST


@pytest.mark.parametrize(("p", "level", "expected"), [
    (0.05, 0.95, True), (0.051, 0.95, False), (0.001, 0.9999, True), (0.002, 0.9999, False), (math.nan, 0.95, False),
])  # fmt: skip
def test_the_smallest_p_value_rejects_at_every_level(p: float, level: float, expected: bool) -> None:
    assert rejects(p, level) is expected
