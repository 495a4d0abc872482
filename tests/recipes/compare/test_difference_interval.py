"""Intervals over seeds and test examples: their limits, and how often they hold the truth in a model that is known."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
import torch
from scipy import stats

import calibayes
from calibayes.recipes.compare.difference_interval import mean_difference
from calibayes.recipes.compare.score_columns import summary


def test_without_chance_in_the_test_examples_it_is_students_interval() -> None:
    values = [0.3, 0.5, 0.45, 0.2]
    found = mean_difference(values, 0.0, level=0.9)
    expected = stats.ttest_1samp(values, 0.0)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.9)))
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)


@pytest.mark.parametrize("values", [[0.02], [0.02, 0.02, 0.02]])
def test_without_chance_in_the_seeds_it_is_the_normal_interval_whatever_their_number(values: list[float]) -> None:
    found = mean_difference(values, 0.01**2, level=0.95)
    assert (found.low, found.high) == pytest.approx((0.02 - 1.959964 * 0.01, 0.02 + 1.959964 * 0.01), rel=1e-6)
    assert found.p_value == pytest.approx(2 * statistics.NormalDist().cdf(-2.0), rel=1e-6)
    assert (found.seeds_error is None) == (len(values) == 1)


def test_bonferroni_divides_the_level_and_multiplies_p() -> None:
    values = [0.3, 0.5, 0.45, 0.2]
    once, often = (mean_difference(values, 0.05**2, level=0.95, comparisons=count) for count in (1, 7))
    assert often[1:3] == pytest.approx(mean_difference(values, 0.05**2, level=1 - 0.05 / 7)[1:3])
    assert often.p_value == pytest.approx(min(1.0, 7 * once.p_value), rel=1e-6)


@pytest.mark.parametrize("value", [0.004, -0.02, 0.05, 0.3])
@pytest.mark.parametrize("comparisons", [1, 7])
def test_p_is_the_level_at_which_the_interval_reaches_zero(value: float, comparisons: int) -> None:
    values = [value - 0.01, value + 0.002, value + 0.008]
    found = mean_difference(values, 0.004**2, comparisons=comparisons)
    assert (found.p_value < 0.05) == (found.above or found.below)
    if found.p_value < 1:
        at = mean_difference(values, 0.004**2, level=1 - found.p_value, comparisons=comparisons)
        assert min(abs(at.low), abs(at.high)) == pytest.approx(0, abs=1e-6)


def test_an_infinite_difference_is_clear_and_one_that_is_none_is_not() -> None:
    assert mean_difference([0.1, math.inf], 0.0).above
    assert mean_difference([0.1, -math.inf], 0.0).below
    nothing = mean_difference([0.1, math.nan], 0.0)
    assert not nothing.above
    assert not nothing.below


def test_the_other_sign_and_another_unit() -> None:
    found = mean_difference([0.01, 0.02, 0.06], 0.01**2)
    turned = found.scaled(-100)
    assert (turned.value, turned.low, turned.high) == pytest.approx((-100 * found.value, -100 * found.high, -100 * found.low))
    assert turned.test_error == pytest.approx(1.0)


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize(
    ("training", "shared", "own"),
    [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 1.0, 0.0), (1.0, 1.0, 1.0), (0.3, 1.0, 0.5), (1.0, 0.2, 0.2)],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(seeds: int, training: float, shared: float, own: float) -> None:
    # D_s = a_s + b + e_s, and what a bootstrap of the test examples sees of them: the variance of b + mean of e_s.
    generator, times = np.random.default_rng(seeds), 500
    per_seed = training * generator.standard_normal((times, seeds)) + own * generator.standard_normal((times, seeds))
    per_seed += shared * generator.standard_normal((times, 1))
    found = [mean_difference(values, shared**2 + own**2 / seeds, level=0.9) for values in per_seed.tolist()]
    held = sum(each.low <= 0 <= each.high for each in found) / times
    assert held > 0.9 - 3 * math.sqrt(0.9 * 0.1 / times)


def test_the_bare_alternatives_do_not_hold_it() -> None:
    # What the formula is for: seeds alone forget the test examples, and test examples alone forget the seeds.
    generator, times, seeds = np.random.default_rng(0), 500, 5
    per_seed = generator.standard_normal((times, seeds)) + generator.standard_normal((times, 1))
    for variance, rows in ((0.0, per_seed), (1.0, per_seed.mean(1, keepdims=True))):
        found = [mean_difference(values, variance, level=0.9) for values in rows.tolist()]
        held = sum(each.low <= 0 <= each.high for each in found) / times
        assert held < 0.88


def test_infinite_losses_on_both_sides_are_no_answer_and_no_crash() -> None:
    assert math.isnan(mean_difference([math.inf, -math.inf, 0.1], 0.0).value)
    certain = calibayes.evaluate(torch.tensor([[1.0, 0.0], [0.4, 0.6]]), torch.tensor([1, 1]), intervals=False)
    assert summary([certain, certain])["nll"].mean == math.inf
