"""Venn–Abers scaling: against isotonic regressions fitted anew for every prediction, and another package's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn.isotonic import IsotonicRegression

from calibayes.errors import InvalidProbabilitiesError
from calibayes.posthoc import PosthocWarning, VennAbersScaling

Array = npt.NDArray[Any]


def drawn(n: int, seed: int, distinct: int | None = None) -> tuple[Array, Array, Array]:
    """Probabilities (rounded to ``distinct`` values), labels and weights."""
    generator = np.random.default_rng(seed)
    probs = generator.uniform(0.02, 0.98, n)
    if distinct is not None:
        probs = np.ceil(probs * distinct) / (distinct + 1)
    return probs, (generator.uniform(size=n) < probs**1.5).astype(np.int64), generator.integers(1, 4, n).astype(np.float64)


def naive(probs: Array, targets: Array, weights: Array, test: Array, label: int) -> Array:
    """Isotonic regression with one more example, for one prediction after the other."""
    found = []
    for score in test:
        curve = IsotonicRegression(y_min=0, y_max=1)
        curve.fit(np.append(probs, score), np.append(targets, label), sample_weight=np.append(weights, 1.0))
        found.append(curve.predict([score])[0])
    return np.array(found)


@pytest.mark.parametrize(("n", "distinct"), [(2, None), (7, None), (40, None), (40, 6), (150, 20), (150, None)])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_fits_at_once_are_those_one_by_one(n: int, distinct: int | None, weighted: bool) -> None:
    for seed in range(4):
        probs, targets, weights = drawn(n, seed, distinct)
        if len(np.unique(targets)) < 2:
            targets[0] = 1 - targets[0]
        test = np.concatenate([[0.0, 0.01, 0.99, 1.0], probs[:10], np.linspace(0.05, 0.95, 13)])
        counts = weights if weighted else np.ones(n)
        scaling = VennAbersScaling().fit(probs, targets, weights=weights if weighted else None)
        low, high = scaling.interval(test)
        np.testing.assert_allclose(low, naive(probs, targets, counts, test, 0), atol=1e-12)
        np.testing.assert_allclose(high, naive(probs, targets, counts, test, 1), atol=1e-12)
        np.testing.assert_allclose(scaling.transform(test), high / (1 - low + high), atol=1e-12)


def test_another_package_says_the_same() -> None:
    """The package venn-abers, version 1.5.4."""
    probs = np.array([0.1, 0.2, 0.2, 0.35, 0.4, 0.55, 0.6, 0.7, 0.8, 0.95])
    targets = np.array([0, 0, 1, 0, 1, 0, 1, 1, 0, 1])
    test = np.array([0.05, 0.2, 0.3, 0.4, 0.58, 0.75, 0.95, 0.99])
    scaling = VennAbersScaling().fit(probs, targets)
    low, high = scaling.interval(test)
    np.testing.assert_allclose(low, [0, 0.25, 0.25, 0.333333, 0.333333, 0.5, 0.6, 0.6], atol=1e-6)
    np.testing.assert_allclose(high, [0.4, 0.5, 0.5, 0.666667, 0.75, 0.75, 1, 1], atol=1e-6)
    expected = [0.285714, 0.4, 0.4, 0.5, 0.529412, 0.6, 0.714286, 0.714286]
    np.testing.assert_allclose(scaling.transform(test), expected, atol=1e-6)


def test_order_is_kept_and_nothing_is_certain() -> None:
    probs, targets, _ = drawn(3000, 0)
    scaling = VennAbersScaling().fit(probs, targets)
    grid = np.linspace(0, 1, 2001)
    low, high = scaling.interval(grid)
    out = scaling.transform(grid)
    assert (np.diff(low) >= -1e-12).all()
    assert (np.diff(high) >= -1e-12).all()
    assert (np.diff(out) >= -1e-12).all()
    assert ((low < out) & (out < high)).all()
    assert 0 < out[0] < out[-1] < 1


def test_the_interval_closes_as_data_grow() -> None:
    widths = []
    for n in (100, 1000, 10_000):
        probs, targets, _ = drawn(n, 0)
        low, high = VennAbersScaling().fit(probs, targets).interval(np.linspace(0.1, 0.9, 101))
        widths.append(float((high - low).mean()))
    assert widths[0] > 3 * widths[1] > 9 * widths[2]


def test_intervals_are_of_the_kind_of_the_predictions() -> None:
    probs, targets, _ = drawn(100, 0)
    scaling = VennAbersScaling().fit(probs, targets)
    low, high = scaling.interval(torch.tensor([[0.4, 0.6]]))
    assert (low.dtype, low.shape, high.shape) == (torch.float32, (1,), (1,))
    odds = torch.tensor([0.6]).logit()
    torch.testing.assert_close(scaling.interval(odds, logits=True)[1], high)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_warns_and_leaves_doubt(label: int) -> None:
    with pytest.warns(PosthocWarning, match=f"Every held-out label is {label}, so one end of every interval"):
        scaling = VennAbersScaling().fit(np.array([0.2, 0.8]), np.array([label, label]))
    out = scaling.transform(np.array([0.1, 0.5, 0.9]))
    assert ((out > 0) & (out < 1)).all()


def test_three_classes_are_refused() -> None:
    with pytest.raises(InvalidProbabilitiesError, match="VennAbersScaling is for two classes"):
        VennAbersScaling().fit(torch.full((4, 3), 1 / 3), torch.tensor([0, 1, 2, 0]))
