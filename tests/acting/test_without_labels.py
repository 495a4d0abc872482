"""Expected accuracy, two-sample tests and the monitor: they hold by simulation, and find what has changed."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from calibayes.acting import ShiftMonitor, expected_accuracy, same_distribution
from calibayes.acting.without_labels import _distribution
from calibayes.errors import InvalidArgumentError, ModelFileError


def test_the_number_of_right_decisions_by_all_outcomes() -> None:
    chances = np.array([0.9, 0.5, 0.7, 0.2])
    expected = np.zeros(5)
    for outcome in itertools.product((0, 1), repeat=4):
        expected[sum(outcome)] += np.prod([p if hit else 1 - p for p, hit in zip(chances, outcome, strict=True)])
    assert _distribution(chances) == pytest.approx(expected)


def test_rare_errors_among_many_decisions_are_not_normal() -> None:
    """One error in ten such samples: an interval of 99 % must hold it."""
    expected = expected_accuracy(np.full(5000, 1 - 0.1 / 5000), level=0.99)
    errors = np.arange(4)
    inside = (expected.interval.low <= 1 - errors / 5000) & (1 - errors / 5000 <= expected.interval.high)
    assert stats.binom.pmf(errors, 5000, 0.1 / 5000)[inside].sum() >= 0.99


@pytest.mark.parametrize("n", [50, 500, 5000])
def test_calibrated_confidences_hold_the_accuracy(n: int) -> None:
    generator = np.random.default_rng(n)
    held = 0
    for _ in range(200):
        confidence = generator.beta(4, 1, n)
        low, high = expected_accuracy(confidence, level=0.9).interval
        held += low <= (generator.random(n) < confidence).mean() <= high
    assert held >= stats.binom.ppf(0.001, 200, 0.9)


def test_old_labels_correct_miscalibrated_confidences() -> None:
    """Confidences that are too high, and a new share of hard examples: the accuracy is right all the same."""
    generator = np.random.default_rng(0)
    held, naive = 0, 0
    for _ in range(200):
        old, new = generator.random(1000), generator.beta(2, 4, 300)
        old_right, new_right = (generator.random(len(each)) < each**2 for each in (old, new))
        expected = expected_accuracy(new, old, old_right, level=0.9)
        held += expected.interval.low <= new_right.mean() <= expected.interval.high
        naive += expected_accuracy(new, level=0.9).interval.low <= new_right.mean()
    assert held >= stats.binom.ppf(0.001, 200, 0.9)
    assert naive < 20
    assert "old" in expected.assumption


def test_capital_stays_finite_however_long_the_stream_has_changed() -> None:
    monitor = ShiftMonitor(np.random.default_rng(0).random(100))
    assert monitor.update(np.linspace(2, 3, 1500))  # each is higher than all before
    assert 1e300 <= monitor.highest < np.inf
    again = ShiftMonitor.from_dict(json.loads(json.dumps(monitor.to_dict(), allow_nan=False)))
    assert again.capital == monitor.capital


def test_a_bin_without_errors_is_not_taken_to_be_perfect() -> None:
    expected = expected_accuracy(np.full(100, 0.99), np.full(20, 0.99), np.ones(20))
    assert expected.accuracy == 1
    assert expected.interval.low < 0.98


@pytest.mark.parametrize("statistic", ["ks", "mmd"])
def test_the_two_sample_test_rejects_as_rarely_as_stated(statistic: Any) -> None:
    generator = np.random.default_rng(1)
    p_values = [
        same_distribution(
            generator.random(30).round(1), generator.random(20).round(1), statistic, permutations=99, seed=run
        ).p_value  # rounded: ties
        for run in range(200)
    ]
    for level in (0.05, 0.2, 0.5):
        assert np.sum(np.array(p_values) <= level) <= stats.binom.ppf(0.999, 200, level)
    assert np.mean(np.array(p_values) <= 0.2) > 0.1  # and no more rarely than that


@pytest.mark.parametrize("statistic", ["ks", "mmd"])
def test_the_two_sample_test_finds_a_shift(statistic: Any) -> None:
    generator = np.random.default_rng(2)
    found = [
        same_distribution(generator.beta(5, 1, 200), generator.beta(3, 1, 200), statistic, permutations=199).p_value <= 0.05
        for _ in range(40)
    ]
    assert np.mean(found) > 0.9


def test_features_that_differ_in_their_dependence_only() -> None:
    generator = np.random.default_rng(3)
    old = generator.normal(size=(300, 2))
    new = generator.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], size=300)
    assert same_distribution(old, new, permutations=199).p_value == 0.005
    assert same_distribution(old, new, permutations=199).statistic == "mmd"
    assert same_distribution(old[:, 0], new[:, 0]).p_value > 0.01


def test_statistics_equal_their_definitions() -> None:
    generator = np.random.default_rng(4)
    old, new = generator.normal(size=60).round(1), generator.normal(size=40).round(1)
    assert same_distribution(old, new).value == pytest.approx(stats.ks_2samp(old, new).statistic)
    pooled = np.concatenate((old, new))
    squares = (pooled[:, None] - pooled) ** 2
    kernel = np.exp(-squares / (2 * np.median(squares[squares > 0])))
    expected = kernel[:60, :60].mean() + kernel[60:, 60:].mean() - 2 * kernel[:60, 60:].mean()
    assert same_distribution(old, new, "mmd").value == pytest.approx(expected)
    assert same_distribution(np.ones(5), np.ones(4), "mmd").p_value == 1
    assert same_distribution(np.ones(5), np.ones(4)).p_value == 1


def test_large_samples_of_features_are_thinned() -> None:
    generator = np.random.default_rng(5)
    result = same_distribution(generator.normal(size=(6000, 2)), generator.normal(size=(2000, 2)), permutations=49)
    assert result.rows == (1500, 500)
    assert result.p_value > 0.02


def test_the_monitor_raises_few_false_alarms_ever() -> None:
    generator = np.random.default_rng(6)
    alarms = 0
    for run in range(100):
        monitor = ShiftMonitor(generator.random(30).round(1), level=0.2, seed=run)  # ties
        alarms += monitor.update(generator.random(120).round(1))
    assert alarms <= stats.binom.ppf(0.999, 100, 0.2)


@pytest.mark.parametrize("change", [(0.6, 0.0), (0.6, 0.4), (0.3, 0.35)], ids=["lower", "higher", "narrower"])
def test_the_monitor_finds_a_change_soon(change: tuple[float, float]) -> None:
    scale, shift = change
    generator = np.random.default_rng(7)
    delays = []
    for run in range(10):
        monitor = ShiftMonitor(generator.random(1000), level=0.01, seed=run)
        assert not monitor.update(generator.random(200))
        monitor.update(shift + scale * generator.random(300))
        delays.append(500 if monitor.alarm_at is None else monitor.alarm_at - 200)
    assert np.median(delays) < 120


def test_the_monitor_goes_on_after_a_restart() -> None:
    values = torch.rand(300)
    whole = ShiftMonitor(values[:100], level=0.05, seed=3)
    whole.update(values[100:] ** 2)
    first = ShiftMonitor(values[:100], level=0.05, seed=3)
    first.update(values[100:150] ** 2)
    second = ShiftMonitor.from_dict(json.loads(json.dumps(first.to_dict())))
    second.update(values[150:] ** 2)
    assert second.to_dict() == whole.to_dict()
    assert whole.alarm
    assert whole.alarm_at is not None
    assert whole.alarm_at <= whole.seen == 200


def test_an_average_over_rank_orders_is_a_fair_game() -> None:
    """All orders of a few numbers are equally likely; over these and the coin of ties the mean capital is 1."""
    capitals = []
    for order in itertools.permutations([0.1, 0.2, 0.3, 0.4]):
        for seed in range(40):
            monitor = ShiftMonitor(np.array(order[:1]), seed=seed)
            monitor.update(np.array(order[1:]))
            capitals.append(monitor.capital)
    assert np.mean(capitals) == pytest.approx(1, abs=4 * np.std(capitals) / len(capitals) ** 0.5)


def test_what_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="together"):
        expected_accuracy(torch.rand(5), torch.rand(5))
    with pytest.raises(InvalidArgumentError, match="'ks' compares one number"):
        same_distribution(torch.rand(5, 2), torch.rand(5, 2), "ks")
    with pytest.raises(InvalidArgumentError, match="as in `old`, 2, but got 1"):
        same_distribution(torch.rand(5, 2), torch.rand(5))
    with pytest.raises(InvalidArgumentError, match="NaN"):
        same_distribution(torch.tensor([0.0, float("nan")]), torch.rand(5))
    with pytest.raises(InvalidArgumentError, match=r"Unknown `statistic` 'kss'. Did you mean 'ks'"):
        same_distribution(torch.rand(5), torch.rand(5), "kss")  # type: ignore[arg-type]
    with pytest.raises(ModelFileError):
        ShiftMonitor.from_dict({})


def test_the_same_numbers_in_another_type_are_no_shift() -> None:
    generator = np.random.default_rng(11)
    old, new = generator.choice([0.7, 0.8, 0.9, 0.95], (2, 300))
    expected = same_distribution(old, new).p_value
    assert expected > 0.05
    assert same_distribution(old.astype(np.float32), new).p_value == expected
    assert same_distribution(old, torch.from_numpy(new).float()).p_value == expected
    monitor, mixed = ShiftMonitor(old), ShiftMonitor(old.astype(np.float32))
    assert not monitor.update(new)
    assert not mixed.update(new)
    assert mixed.capital == monitor.capital
    right = generator.random(300) < old
    assert expected_accuracy(new.astype(np.float32), old, right).accuracy == expected_accuracy(new, old, right).accuracy


def test_the_kernel_discrepancy_does_not_depend_on_where_the_features_lie() -> None:
    """Most rows are equal: rounding of their distances must not become the width of the kernel."""
    generator = np.random.default_rng(12)
    old, new = generator.normal(size=(2, 60, 3)) * (generator.random((2, 60, 1)) < 0.1)
    expected = same_distribution(old, new, permutations=99)
    place = np.array([1, 2, 3]) / 3
    moved = same_distribution(old + place, new + place, permutations=99)
    assert moved.value == pytest.approx(expected.value, rel=1e-6)
    assert moved.p_value == expected.p_value
