"""Certified costs: violations and coverage by simulation, and the bets against a known law."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from scipy import stats
from tests.metrics.simulated import classifier
from torch import Tensor

from calibayes.acting import CostThreshold, certify_cost, certify_threshold, decide_by_cost
from calibayes.acting.risk_tests import betting_p_value
from calibayes.errors import InvalidArgumentError, ModelFileError

COSTS = torch.tensor([[0.0, 1, 4], [1, 0, 2], [8, 2, 0]])


def hoeffding_bentkus(losses: np.ndarray[tuple[int], np.dtype[np.float64]], limit: float) -> float:
    """Another valid p-value of the same hypothesis (Bates et al., 2021)."""
    n, mean = len(losses), min(max(float(losses.mean()), 1e-12), limit)
    distance = mean * math.log(mean / limit) + (1 - mean) * math.log((1 - mean) / (1 - limit))
    return min(1.0, math.exp(-n * distance), math.e * float(stats.binom.cdf(math.ceil(n * mean), n, limit)))


def test_bets_are_won_by_luck_as_rarely_as_stated_and_more_often_than_by_hoeffding_and_bentkus_otherwise() -> None:
    generator = np.random.default_rng(0)

    def losses(mean: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Mostly nothing, sometimes little, rarely all."""
        kind = generator.random(400)
        return np.where(kind < mean / 4, 1.0, np.where(kind < mean / 4 + 3 * mean, 0.25, 0.0))

    null = [betting_p_value(losses(0.05), 0.05, 0.1) <= 0.1 for _ in range(1000)]
    assert sum(null) <= stats.binom.ppf(0.999, 1000, 0.1)
    drawn = [losses(0.03) for _ in range(200)]
    ours = np.mean([betting_p_value(each, 0.05, 0.1) <= 0.1 for each in drawn])
    theirs = np.mean([hoeffding_bentkus(each, 0.05) <= 0.1 for each in drawn])
    assert ours > theirs + 0.1


def test_violations_are_rare_and_coverage_is_within_a_few_points_of_the_best() -> None:
    everyone, _ = classifier(100_000, 1.0, seed=0, classes=3)
    expected = decide_by_cost(everyone, COSTS).expected_cost  # the true one, for these probabilities
    ordered = expected.sort().values
    mean = ordered.cumsum(0) / torch.arange(1, len(ordered) + 1)
    limit, runs = 0.4, 30
    best = float((mean <= limit).double().mean())
    coverages, violations = [], 0
    for run in range(runs):
        probs, labels = classifier(4000, 1.0, seed=1000 + run, classes=3)
        threshold = certify_cost(probs, labels, COSTS, limit)
        answered = threshold.answers(expected)
        coverages.append(float(answered.double().mean()))
        violations += bool(answered.any()) and float(expected[answered].mean()) > limit + 1e-3
    assert 0.1 < best < 0.9
    assert np.mean(coverages) > best - 0.08
    assert violations <= stats.binom.ppf(0.999, runs, 0.1)


def test_costs_of_zero_and_one_certify_the_error_rate_exactly() -> None:
    probs, labels = classifier(3000, 1.0, seed=1, classes=3)
    confidence, decision = probs.max(-1)
    for scale, shift in ((1.0, 0.0), (10.0, -3.0)):
        costs = scale * (1 - torch.eye(3, dtype=torch.float64)) + shift
        by_cost = certify_cost(probs, labels, costs, scale * 0.2 + shift)
        by_error = certify_threshold(confidence, decision == labels, 0.8)
        assert by_cost.answered == by_error.answered > 0
        assert by_cost.mean_cost == pytest.approx(scale * by_error.errors / by_error.answered + shift)


def test_what_is_answered_is_what_was_certified() -> None:
    probs, labels = classifier(2000, 1.0, seed=2, classes=3)
    threshold = certify_cost(probs, labels, COSTS, 0.5)
    decisions = decide_by_cost(probs, COSTS)
    answered = threshold.answers(decisions.expected_cost)
    assert int(answered.sum()) == threshold.answered > 0
    assert float(decisions.incurred(labels)[answered].mean()) == pytest.approx(threshold.mean_cost)
    assert CostThreshold.from_dict(json.loads(json.dumps(threshold.to_dict()))) == threshold
    assert "a mean cost of at most 0.5 with certainty 90 %" in threshold.statement


def test_none_is_an_answer() -> None:
    probs, labels = classifier(30, 1.0, seed=3, classes=3)
    none = certify_cost(probs, labels, COSTS, 0.01)
    assert none.value is None
    assert none.coverage == 0
    assert "No threshold can be certified" in none.statement
    assert not none.answers(torch.zeros(3)).any()
    again = CostThreshold.from_dict(json.loads(json.dumps(none.to_dict(), allow_nan=False)))
    assert again.value is None
    assert math.isnan(again.mean_cost)
    assert "on 1 calibration row." in certify_cost(probs[:1], labels[:1], COSTS, 0.01).statement


@pytest.mark.parametrize("cost", [0.0, 8.0, float("nan"), "1"])
def test_a_cost_that_cannot_be_missed_or_reached_is_refused(cost: float) -> None:
    probs, labels = classifier(30, 1.0, seed=4, classes=3)
    with pytest.raises(InvalidArgumentError, match="between the smallest and the largest of `costs`, 0 and 8"):
        certify_cost(probs, labels, COSTS, cost)
    with pytest.raises(ModelFileError):
        CostThreshold.from_dict({})


def test_the_order_of_sorted_rows_does_not_matter_to_the_guarantee() -> None:
    """Bets depend on the order; rows sorted by label are shuffled first, by the seed."""
    probs, labels = classifier(2000, 1.0, seed=5, classes=3)

    def coverage(order: Tensor, seed: int = 0) -> float:
        return certify_cost(probs[order], labels[order], COSTS, 0.5, seed=seed).coverage

    by_label, as_drawn = labels.argsort(), torch.arange(2000)
    assert coverage(by_label) == pytest.approx(coverage(as_drawn), abs=0.06)
    assert coverage(as_drawn) == coverage(as_drawn)
