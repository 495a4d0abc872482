"""Platt and isotonic scaling against scikit-learn, closed forms, and data that settle nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression
from tests.posthoc.frozen import sklearn_calibrated
from torch import Tensor

from calibayes.errors import InvalidProbabilitiesError
from calibayes.posthoc import IsotonicScaling, PlattScaling, PosthocWarning


def simulated(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Log-odds z, and labels of probability σ(z / 2 + 1)."""
    generator = torch.Generator().manual_seed(seed)
    odds = 3 * torch.randn(n, generator=generator).double()
    return odds, (torch.rand(n, generator=generator) < (odds / 2 + 1).sigmoid()).long()


def test_platt_recovers_a_known_sigmoid() -> None:
    odds, targets = simulated(100_000)
    found = PlattScaling().fit(odds.sigmoid(), targets)
    assert found.slope == pytest.approx(0.5, abs=0.02)
    assert found.intercept == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [20, 3000])
def test_platt_is_scikit_learns(n: int, weighted: bool) -> None:
    odds, targets = simulated(n)
    weights = torch.rand(n, generator=torch.Generator().manual_seed(0)).double() if weighted else None
    theirs = sklearn_calibrated("sigmoid", odds[:, None].numpy(), targets.numpy(), None if weights is None else weights.numpy())
    ours = PlattScaling().fit(odds, targets, weights=weights, logits=True).transform(odds, logits=True)
    # scikit-learn stops its search at 1e-6.
    np.testing.assert_allclose(ours.numpy(), theirs[:, 1], atol=1e-5)


@pytest.mark.parametrize("case", ["drawn", "separable", "all wrong", "outlier"])
def test_the_gradient_of_platts_objective_is_zero(case: str) -> None:
    odds, targets = simulated(1000)
    if case in ("separable", "all wrong"):
        targets = ((odds > 0) == (case == "separable")).long()
    if case == "outlier":
        odds[0] = 1e4
    found = PlattScaling().fit(odds, targets, logits=True)
    of_one = int(targets.sum())
    high, low = (of_one + 1) / (of_one + 2), 1 / (len(targets) - of_one + 2)
    smoothed = low + (high - low) * targets.double()
    error = found.transform(odds, logits=True) - smoothed
    assert abs(error.mean()) < 1e-8
    assert abs((error * odds).mean()) / odds.std() < 1e-8


def test_platt_keeps_what_is_small() -> None:
    odds, targets = simulated(1000)
    found = PlattScaling().fit(odds, targets, logits=True)
    out = found.transform(torch.tensor([[0.0, 200.0]], dtype=torch.float64), logits=True)
    assert math.log(float(out[0, 0])) == pytest.approx(-(200 * found.slope + found.intercept), rel=1e-9)


def test_platt_of_the_other_class_is_the_mirror_image() -> None:
    odds, targets = simulated(1000)
    one = PlattScaling().fit(odds, targets, logits=True)
    other = PlattScaling().fit(-odds, 1 - targets, logits=True)
    assert other.slope == pytest.approx(one.slope, rel=1e-7)
    assert other.intercept == pytest.approx(-one.intercept, rel=1e-7)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("n", [1, 9])
def test_platt_of_one_class_is_its_smoothed_share(n: int, label: int) -> None:
    odds, _ = simulated(n)
    with pytest.warns(PosthocWarning, match=f"Every held-out label is {label}, so the sigmoid is flat"):
        found = PlattScaling().fit(odds, torch.full((n,), label), logits=True)
    share = (n + 1) / (n + 2) if label else 1 / (n + 2)
    torch.testing.assert_close(found.transform(odds, logits=True), torch.full((n,), share).double(), atol=1e-7, rtol=0)


def test_platt_of_constant_predictions_is_the_smoothed_share() -> None:
    """Seven of ten: (7 · 8/9 + 3 · 1/5) / 10."""
    found = PlattScaling().fit(torch.full((10,), 0.9), torch.tensor([1] * 7 + [0] * 3))
    assert found.transform(torch.tensor([0.9])).item() == pytest.approx((7 * 8 / 9 + 3 / 5) / 10, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_isotonic_is_scikit_learns(weighted: bool) -> None:
    odds, targets = simulated(2000)
    probs = odds.sigmoid()
    weights = torch.randint(3, (2000,), generator=torch.Generator().manual_seed(0)) if weighted else None
    model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    model.fit(probs.numpy(), targets.numpy(), sample_weight=None if weights is None else weights.numpy())
    found = IsotonicScaling().fit(probs, targets, weights=weights)
    grid = torch.linspace(0, 1, 1001, dtype=torch.float64)
    np.testing.assert_array_equal(found.transform(grid).numpy(), model.predict(grid.numpy()))
    torch.testing.assert_close(found.transform(torch.stack((1 - grid, grid), -1))[:, 1], found.transform(grid), atol=0, rtol=0)


def test_isotonic_keeps_the_order_and_each_groups_share() -> None:
    odds, targets = simulated(2000)
    out = IsotonicScaling().fit(odds, targets, logits=True).transform(odds, logits=True)
    assert (out[odds.argsort()].diff() >= 0).all()
    for level in out.unique():
        assert targets[out == level].double().mean().item() == pytest.approx(level.item(), abs=1e-9)


@pytest.mark.parametrize("label", [0, 1])
def test_isotonic_of_one_class_is_constant(label: int) -> None:
    with pytest.warns(PosthocWarning, match=f"Every held-out label is {label}, so the curve is constant"):
        found = IsotonicScaling().fit(torch.tensor([0.2, 0.8]), torch.tensor([label, label]))
    assert found.transform(torch.tensor([0.0, 0.5, 1.0])).tolist() == [label] * 3


def test_isotonic_of_all_wrong_is_the_share() -> None:
    found = IsotonicScaling().fit(torch.tensor([0.1, 0.2, 0.8]), torch.tensor([1, 1, 0]))
    torch.testing.assert_close(found.transform(torch.tensor([0.0, 0.5, 1.0])), torch.full((3,), 2 / 3))


@pytest.mark.parametrize("scaling", [PlattScaling(), IsotonicScaling()])
def test_weights_are_replication(scaling: PlattScaling | IsotonicScaling) -> None:
    odds, targets = simulated(200)
    times = torch.randint(4, (200,), generator=torch.Generator().manual_seed(0))
    weighted = scaling.fit(odds, targets, weights=times, logits=True).transform(odds, logits=True)
    scaling.fit(odds.repeat_interleave(times), targets.repeat_interleave(times), logits=True)
    torch.testing.assert_close(weighted, scaling.transform(odds, logits=True), atol=1e-9, rtol=0)


@pytest.mark.parametrize("scaling", [PlattScaling(), IsotonicScaling()])
def test_three_classes_are_refused(scaling: PlattScaling | IsotonicScaling) -> None:
    name = type(scaling).__name__
    with pytest.raises(InvalidProbabilitiesError, match=f"{name} is for two classes, but `probs` have 3. Use Temperature"):
        scaling.fit(torch.full((4, 3), 1 / 3), torch.tensor([0, 1, 2, 0]))
