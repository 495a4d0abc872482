"""Intervals hold the true value as often as they say, for calibrated classifiers and for others."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
from tests.metrics.simulated import classifier, says

from calibayes import metrics
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import METRICS, Interval, confidence_interval, differences, ece, evaluate, kce_p_value
from calibayes.metrics.bootstrap import draws, replicate_counts
from calibayes.metrics.evaluate import EvaluationSettings
from calibayes.metrics.intervals import wilson
from calibayes.metrics.metric_values import values
from calibayes.metrics.prediction_arrays import as_predictions

# Zero for a classifier that is calibrated in every class.
ERRORS = (
    "ece", "ece_equal_mass", "ece_classwise", "mce", "rms_calibration_error", "ece_squared_debiased", "smooth_ece", "mmce",
    "kce_squared", "brier_reliability",
)  # fmt: skip
RUNS = 100
# Of 100 intervals that hold the truth with probability 0.95, fewer than 87 do in 1 of 650 such experiments.
FEWEST = 87


@cache
def truths(temperature: float) -> dict[str, float]:
    """True values, from enough examples that chance does not matter; the squares are those of the roots."""
    one, two = (evaluate(*classifier(1_000_000, temperature, seed=seed), intervals=False).values for seed in (-1, -2))
    true = {name: (one[name] + two[name]) / 2 for name in one}
    true |= {"kce_squared": true["mmce"] ** 2, "ece_squared_debiased": true["rms_calibration_error"] ** 2}
    return true | (dict.fromkeys(ERRORS, 0.0) if temperature == 1 else {})


def hits(temperature: float, n: int, true: dict[str, float]) -> dict[str, int]:
    """The number of intervals that hold the true value."""
    count = dict.fromkeys(true, 0)
    for seed in range(RUNS):
        scores = evaluate(*classifier(n, temperature, seed=seed), replicates=200, seed=seed)
        for name, (low, high) in scores.intervals.items():
            count[name] += low - 1e-12 <= true[name] <= high + 1e-12
    return count


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.0, 0.6], ids=["calibrated", "overconfident"])
def test_intervals_hold_the_true_value_as_often_as_they_say(temperature: float) -> None:
    true = truths(temperature)
    count = hits(temperature, 400, true)
    # Sparse bins make the largest gap hard, and so few examples are answered at 95 % that coverage moves in steps.
    rough = {"mce", "coverage_at_target", "kce_p_value"}
    assert {name: held for name, held in count.items() if held < FEWEST and name not in rough} == {}
    assert count["coverage_at_target"] >= 0.8 * RUNS


def test_the_ece_of_a_calibrated_model_at_ten_thousand_where_percentiles_always_miss() -> None:
    ours = percentiles = 0
    for seed in range(40):
        r = 0.5 + 0.5 * torch.rand(10_000, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        probs, targets = says(r, r, seed=1000 + seed)
        ours += confidence_interval("ece", probs, targets, replicates=300, seed=seed).low == 0
        if seed < 5:
            generator = np.random.default_rng(seed)
            drawn = [generator.integers(10_000, size=10_000) for _ in range(100)]
            replicates = [ece(probs[index], targets[index], check=False) for index in drawn]
            percentiles += float(np.quantile(replicates, 0.025)) > 0
            assert np.mean(np.array(replicates) > ece(probs, targets)) > 0.5
    assert percentiles == 5
    assert ours >= 35


@pytest.mark.slow
def test_paired_differences_hold_the_true_difference() -> None:
    true_a, true_b = truths(0.6), truths(1.0)
    count = dict.fromkeys(true_a, 0)
    for seed in range(60):
        (sharp, targets), (soft, _) = classifier(400, 0.6, seed=seed), classifier(400, 1.0, seed=seed)
        for name, gain in differences(sharp, soft, targets, replicates=200, seed=seed).items():
            count[name] += gain.low - 1e-12 <= true_a[name] - true_b[name] <= gain.high + 1e-12
    checked = ("nll", "brier", "ece", "ece_equal_mass", "ece_classwise", "smooth_ece", "mmce", "rms_calibration_error", "aurc")
    assert {name: count[name] for name in checked if count[name] < 51} == {}  # of 60; fewer in 1 of 600


def test_pairing_makes_the_difference_of_like_models_sharp() -> None:
    probs, targets = classifier(1500, 1.0, seed=0)
    other = (probs.log() / 0.95).softmax(-1)
    gain = differences(probs, other, targets, replicates=300)["nll"]
    alone, alone_ece = (evaluate(probs, targets, replicates=300).intervals[name] for name in ("nll", "ece"))
    assert gain.high - gain.low < 0.1 * (alone.high - alone.low)
    same = differences(probs, probs, targets, replicates=100)
    assert all(each.value == 0 and each.low == 0 == each.high for each in same.values())
    turned = differences(other, probs, targets, replicates=300)["nll"]
    ece_apart = differences(probs, (probs.log() / 0.995).softmax(-1), targets, replicates=300)["ece"]
    assert ece_apart.high - ece_apart.low < 0.5 * (alone_ece.high - alone_ece.low)
    assert (turned.value, turned.low, turned.high) == pytest.approx((-gain.value, -gain.high, -gain.low), abs=1e-4)


def test_the_seed_decides_the_intervals() -> None:
    probs, targets = classifier(500, 0.8, seed=0)
    first, again, other = (evaluate(probs, targets, seed=seed, replicates=200) for seed in (3, 3, 4))
    assert first == again
    assert first.intervals != other.intervals


def test_one_metric_alone_has_the_interval_that_it_has_among_all() -> None:
    probs, targets = classifier(300, 0.7, seed=1)
    all_of_them = evaluate(probs, targets, replicates=200, seed=5).intervals
    names = [metric.name for metric in METRICS if metric.name != "kce_p_value"]
    alone = {name: confidence_interval(name, probs, targets, replicates=200, seed=5) for name in names}
    assert alone == {name: all_of_them[name] for name in names}


def test_an_unknown_metric_is_named_with_those_there_are() -> None:
    with pytest.raises(InvalidArgumentError, match=r"one of accuracy, .* but got 'accurasy'"):
        confidence_interval("accurasy", *classifier(10, 1.0, seed=0))


def test_blocks_of_examples_spread_as_examples_do() -> None:
    probs, targets = classifier(6000, 0.7, seed=3)
    sample = EvaluationSettings().sample(as_predictions(probs, targets), resample=True)
    assert sample.block is None, "this many examples are assigned to blocks"
    resampled = draws(sample, values(sample), 1000, 0)
    generator = np.random.default_rng(0)
    drawn = [torch.from_numpy(generator.integers(6000, size=6000)) for _ in range(300)]
    for metric in (metrics.nll, metrics.brier, metrics.aurc, metrics.overconfidence, ece, metrics.mmce, metrics.wmmce):
        again = float(np.std([metric(probs[index], targets[index], check=False) for index in drawn]))
        blocks = float(resampled[metric.__name__].chance_deviations(0.95).deviations[-1].std())
        assert blocks == pytest.approx(again, rel=0.15), metric  # 300 replicates know a standard deviation to 4 %


def test_the_order_of_the_examples_does_not_matter_to_blocks() -> None:
    probs, targets = classifier(20_000, 0.8, seed=4)
    order = targets.argsort()  # assigned in turn, blocks of sorted data would be too alike
    for metric in ("brier", "accuracy", "ece"):
        mixed, ordered = (confidence_interval(metric, p, y) for p, y in ((probs, targets), (probs[order], targets[order])))
        assert ordered.high - ordered.low == pytest.approx(mixed.high - mixed.low, rel=0.15), metric


def test_weights_widen_intervals_as_fewer_examples_do() -> None:
    probs, targets = classifier(3000, 0.8, seed=5)
    weights = torch.where(torch.arange(3000) % 3 == 0, 1.0, 1e-9).double()
    weighted = evaluate(probs, targets, weights=weights)
    third = evaluate(probs[::3], targets[::3])
    for name in ("accuracy", "nll", "ece", "smooth_ece", "aurc"):
        ours, theirs = weighted.intervals[name], third.intervals[name]
        assert ours.high - ours.low == pytest.approx(theirs.high - theirs.low, rel=0.2), name


def test_all_right_has_an_interval_for_the_accuracy() -> None:
    scores = evaluate(torch.tensor([[0.9, 0.1]]).expand(50, 2), torch.zeros(50, dtype=torch.long))
    assert scores.intervals["accuracy"].high == 1
    assert scores.intervals["accuracy"].low == pytest.approx(0.9287, abs=1e-3)  # Wilson, by hand: 1 / (1 + 3.8415/50)


def test_wilson_against_the_textbook() -> None:
    assert wilson(0.1, 10, 0.95) == pytest.approx((0.01788, 0.40415), abs=1e-4)


def test_an_infinite_loss_has_an_honest_interval() -> None:
    probs = torch.tensor([[0.7, 0.3]] * 99 + [[1.0, 0.0]])
    targets = torch.tensor([0, 1, 1] * 33 + [1])
    scores = evaluate(probs, targets, replicates=200)
    assert scores.nll == math.inf
    assert math.isfinite(scores.intervals["nll"].low)
    assert scores.intervals["nll"].high == math.inf
    assert all(math.isfinite(high) for name, (_, high) in scores.intervals.items() if name != "nll")
    difference = differences(probs, torch.full((100, 2), 0.5), targets, replicates=200)["nll"]
    assert difference == (math.inf, math.inf, math.inf)
    assert difference.clear
    both = differences(probs, probs, targets, replicates=200)["nll"]
    assert not both.clear


def test_a_single_example_has_no_interval_but_a_value() -> None:
    scores = evaluate(torch.tensor([[0.7, 0.3]]), torch.tensor([0]))
    assert scores.accuracy == 1
    assert math.isnan(scores.intervals["ece"].low)
    assert scores.intervals["accuracy"].low < 0.3


def test_the_debiased_error_has_no_bias_where_confidences_are_those_of_bins() -> None:
    middles = torch.tensor([0.55, 0.65, 0.75, 0.85, 0.95], dtype=torch.float64)
    r = middles[torch.arange(100) % 5]
    for gap in (0.0, 0.1):
        estimates = [metrics.ece_squared_debiased(*says(r, r - gap, seed), bins=10, check=False) for seed in range(600)]
        error = float(np.std(estimates)) / math.sqrt(600)
        assert np.mean(estimates) == pytest.approx(gap**2, abs=3.5 * error)


def test_bins_of_one_example_do_not_break_the_debiased_error() -> None:
    scores = evaluate(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
    assert scores.ece_squared_debiased == 0
    assert all(math.isfinite(value) for value in scores.intervals["ece_squared_debiased"])


def test_luck_does_not_make_an_interval_collapse() -> None:
    """Right nine times in ten at a confidence of 0.9, exactly: no error is observed, and yet one may well be there."""
    probs = torch.tensor([[0.9, 0.1]], dtype=torch.float64).expand(200, 2)
    scores = evaluate(probs, torch.tensor([0] * 9 + [1]).repeat(20))
    for name in ("ece", "ece_equal_mass", "rms_calibration_error", "mmce", "smooth_ece", "mce"):
        low, high = scores.intervals[name]
        assert low == 0, name
        # The standard error of the accuracy is √(0.09/200) = 0.021.
        assert 0.02 < high < 0.08, (name, high)


def test_the_largest_gap_of_a_single_example_is_no_evidence() -> None:
    """Right once at a confidence of 0.3: a gap of 0.7 that cannot be larger, and that a calibrated model has 3 times in 10."""
    confidence = torch.tensor([0.95] * 200 + [0.3], dtype=torch.float64)
    probs = torch.cat((confidence[:, None], ((1 - confidence) / 4)[:, None].expand(-1, 4)), -1)
    targets = torch.tensor(([0] * 19 + [1]) * 10 + [0])
    scores = evaluate(probs, targets)
    assert scores.mce == pytest.approx(0.7)
    assert scores.intervals["mce"].low == 0
    assert scores.intervals["mce"].high == pytest.approx(0.7, abs=0.01)


def test_a_difference_lies_within_its_interval() -> None:
    (sharp, targets), (soft, _) = classifier(200, 0.8, seed=1), classifier(200, 1.1, seed=1)
    for difference in differences(sharp, soft, targets, replicates=100).values():
        assert difference.low <= difference.value <= difference.high


def test_replicates_hold_as_many_blocks_as_there_are() -> None:
    counts = replicate_counts(torch.ones(50, dtype=torch.float64), 200, seed=0)
    assert torch.equal(counts.sum(-1), torch.full((200,), 50.0, dtype=torch.float64))
    assert float(counts.var()) == pytest.approx(1 - 1 / 50, rel=0.05)


def test_replicates_of_empty_blocks_alone_are_replaced() -> None:
    weights = torch.zeros(50, dtype=torch.float64)
    weights[7] = 1.0
    assert bool((replicate_counts(weights, 200, seed=0) @ weights > 0).all())


def test_weights_of_zero_are_as_if_left_out() -> None:
    probs, targets = classifier(200, 0.7, seed=6)
    weights = torch.zeros(200, dtype=torch.float64)
    weights[:5] = 1.0
    assert evaluate(probs, targets, weights=weights) == evaluate(probs[:5], targets[:5], weights=weights[:5])
    assert evaluate(probs, targets, weights=weights * 1e-170) == evaluate(probs, targets, weights=weights)


def test_all_right_is_no_proof_of_calibration() -> None:
    """Three right at a confidence of 1 may be one of many kinds; twenty right at 0.95 are what a calibrated model has."""
    certain = evaluate(torch.tensor([[1.0, 0.0]]).expand(3, 2), torch.zeros(3, dtype=torch.long))
    assert certain.intervals["ece"].high > 0.5
    modest = evaluate(torch.tensor([[0.95, 0.05]]).expand(20, 2), torch.zeros(20, dtype=torch.long))
    for name in ("ece", "ece_equal_mass", "rms_calibration_error", "smooth_ece", "mmce", "mce"):
        assert modest.intervals[name].low == 0, name
    assert modest.intervals["overconfidence"].low < 0 < modest.intervals["overconfidence"].high
    assert 0.05 < modest.kce_p_value < 0.95


@pytest.mark.parametrize("confidence", [0.98, 0.99])
def test_sure_and_calibrated_is_not_called_under_confident(confidence: float) -> None:
    wrong = {"overconfidence": 0, "ece": 0, "p": 0}
    r = torch.full((150,), confidence, dtype=torch.float64)
    for seed in range(120):
        probs, targets = says(r, r, seed)
        gap = confidence_interval("overconfidence", probs, targets, replicates=100, seed=seed)
        wrong["overconfidence"] += not gap.low <= 0 <= gap.high
        wrong["ece"] += confidence_interval("ece", probs, targets, replicates=100, seed=seed).low > 0
        wrong["p"] += kce_p_value(probs, targets, seed=seed) <= 0.01
    assert wrong["overconfidence"] <= 12
    assert wrong["ece"] <= 9
    assert wrong["p"] <= 5


def test_sparse_bins_do_not_make_a_calibrated_model_look_otherwise() -> None:
    low = {"brier_reliability": 0, "ece_classwise": 0, "rms_calibration_error": 0}
    for seed in range(25):
        scores = evaluate(*classifier(300, 1.0, seed=seed, classes=60), replicates=100, seed=seed)
        for name in low:
            low[name] += scores.intervals[name].low > 0
    assert all(count <= 4 for count in low.values()), low


def test_intervals_are_pairs() -> None:
    scores = evaluate(*classifier(200, 0.9, seed=0), replicates=100)
    assert all(isinstance(ends, Interval) and not ends.low > ends.high for ends in scores.intervals.values())
