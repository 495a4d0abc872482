"""Measures of outsider detection against scikit-learn and closed forms, and intervals that hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from calibayes.acting import detection, selective_with_outsiders
from calibayes.acting.detection import auroc, auroc_interval, average_precision, detection_probability, fpr_at_tpr
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import aurc


@pytest.mark.parametrize("digits", [9, 1])
def test_scikit_learn(digits: int) -> None:
    """With rounded scores there are ties."""
    generator = np.random.default_rng(0)
    low, high = generator.normal(size=300).round(digits), (1 + generator.normal(size=200)).round(digits)
    scores, outside = np.concatenate((low, high)), np.repeat([0, 1], [300, 200])
    assert auroc(low, high) == pytest.approx(roc_auc_score(outside, scores))
    assert average_precision(low, high) == pytest.approx(average_precision_score(outside, scores))
    passing, accepted, _ = roc_curve(1 - outside, -scores, drop_intermediate=False)
    assert fpr_at_tpr(low, high) == pytest.approx(min(passing[accepted >= 0.95]))


def test_delong_by_its_definition() -> None:
    generator = np.random.default_rng(1)
    low, high = generator.normal(size=40), 1 + generator.normal(size=30)
    wins = (high[:, None] > low) + 0.5 * (high[:, None] == low)
    variance = wins.mean(1).var(ddof=1) / 30 + wins.mean(0).var(ddof=1) / 40
    value = wins.mean()
    half = 1.959964 * math.sqrt(variance) / (value * (1 - value))
    odds = math.log(value / (1 - value))
    expected = [1 / (1 + math.exp(-odds - side)) for side in (-half, half)]
    assert auroc_interval(low, high) == pytest.approx(expected, rel=1e-6)


def test_separated_scores_are_not_certain() -> None:
    low, high = np.arange(20.0), 100 + np.arange(10.0)
    measured = detection(low, high)
    assert measured.auroc == measured.aupr == measured.detection_probability == 1
    assert measured.fpr95 == 0
    assert 0.6 < measured.auroc_interval.low < 0.8
    assert 0.2 < measured.fpr95_interval.high < 0.4
    assert 0.2 < measured.aupr_interval.low < measured.aupr_interval.high == 1
    assert detection(high, low).auroc == 0


def test_intervals_hold_the_truth_of_few_scores_that_are_often_separated() -> None:
    generator = np.random.default_rng(6)
    truth = {"aupr": average_precision(generator.normal(size=100_000), 3.5 + generator.normal(size=100_000))}
    truth["auroc"] = stats.norm.cdf(3.5 / math.sqrt(2))
    held, separated = dict.fromkeys(truth, 0), 0
    for run in range(60):
        measured = detection(generator.normal(size=10), 3.5 + generator.normal(size=10), replicates=40, seed=run)
        separated += measured.auroc == 1
        for name, value in truth.items():
            low, high = getattr(measured, f"{name}_interval")
            held[name] += low <= value <= high
    assert separated > 30
    assert all(count >= 54 for count in held.values()), held


def test_scores_that_are_all_the_same_may_differ_by_luck() -> None:
    low, high = auroc_interval(np.zeros(10), np.zeros(30))
    assert low == pytest.approx(1 - high)
    assert low == pytest.approx(0.5 - (1 - 0.025**0.1) / 2)


@pytest.mark.parametrize(("insiders", "outsiders"), [(10, 10), (10, 30), (200, 20)])
def test_the_interval_of_aupr_for_equal_scores_holds_what_they_may_come_from(insiders: int, outsiders: int) -> None:
    measured = detection(np.zeros(insiders), np.zeros(outsiders), replicates=5)
    share = outsiders / (insiders + outsiders)
    assert measured.aupr == pytest.approx(share)
    # Samples that are all tied one time in twenty: outsiders that may lie on either side, and insiders on the other.
    other = 1 - 0.05 ** (1 / (insiders + outsiders))
    for side in (-1.0, 1.0):
        low, high = (
            np.repeat([0.0, end], np.round([10_000 * (1 - other), 10_000 * other]).astype(int)) for end in (-side, side)
        )
        large = np.tile(low, insiders), np.tile(high, outsiders)
        assert measured.aupr_interval.low < average_precision(*large) < measured.aupr_interval.high
    few, many = (detection(np.zeros(n), np.zeros(n), replicates=5).aupr_interval for n in (20, 2000))
    assert few.low < many.low < 0.5 < many.high < few.high
    assert many.high - many.low < 0.005


def test_the_detection_probability_of_normal_scores_is_known() -> None:
    generator = np.random.default_rng(2)
    for distance in (0.0, 1.0, 2.0):
        low, high = generator.normal(size=20_000), distance + generator.normal(size=20_000)
        # The total variation of two normals is 2 Φ(d/2) - 1.
        assert detection_probability(low, high) == pytest.approx(stats.norm.cdf(distance / 2), abs=0.01)
    wide = 3 * generator.normal(size=20_000)  # a detector that may alarm on both sides
    assert detection_probability(low, wide) > 0.65


def test_chance_is_not_taken_for_detection() -> None:
    generator = np.random.default_rng(3)
    drawn = [detection_probability(generator.normal(size=100), generator.normal(size=100)) for _ in range(200)]
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.01)
    assert detection_probability(np.zeros(1000), np.zeros(1000)) == pytest.approx(0.5, abs=0.05)  # all tied


def test_intervals_hold_the_truth() -> None:
    generator = np.random.default_rng(4)
    large = generator.normal(size=200_000), 1 + generator.normal(size=100_000)  # as many outsiders for each insider
    truth = {
        "auroc": stats.norm.cdf(1 / math.sqrt(2)),
        "aupr": average_precision(*large),
        "fpr95": stats.norm.cdf(stats.norm.ppf(0.95) - 1),
        "detection_probability": stats.norm.cdf(0.5),
    }
    held = dict.fromkeys(truth, 0)
    for run in range(60):
        measured = detection(generator.normal(size=300), 1 + generator.normal(size=150), level=0.9, replicates=60, seed=run)
        for name, value in truth.items():  # a rate of 90 % has fewer than 48 one time in a hundred
            low, high = getattr(measured, f"{name}_interval")
            held[name] += low <= value <= high
    assert all(count >= 48 for count in held.values()), held


@pytest.mark.slow
@pytest.mark.parametrize(("insiders", "outsiders"), [(20, 20), (100, 60)])
@pytest.mark.parametrize("distance", [0.0, 1.0, 2.5])
def test_the_interval_of_aupr_holds_the_truth_in_small_samples(insiders: int, outsiders: int, distance: float) -> None:
    scores = np.linspace(-6, 9, 40_001)
    found, alarms = outsiders * stats.norm.sf(scores - distance), insiders * stats.norm.sf(scores)
    truth = -np.trapezoid(found / (found + alarms + 1e-300), found / outsiders)
    generator, held = np.random.default_rng(4), 0
    for run in range(200):
        low, high = generator.normal(size=insiders), distance + generator.normal(size=outsiders)
        interval = detection(low, high, replicates=200, seed=run).aupr_interval
        held += interval.low <= truth <= interval.high
    assert held >= 178  # 95 % of 200, less three standard errors, and a little for what is approximate


def test_the_same_seed_gives_the_same_and_bad_scores_are_refused() -> None:
    low, high = torch.randn(50), torch.randn(40)
    assert detection(low, high, seed=1) == detection(low, high, seed=1)
    with pytest.raises(InvalidArgumentError, match="`insiders` to be finite, but number 0 is nan"):
        detection(torch.tensor([float("nan")]), high)
    with pytest.raises(InvalidArgumentError, match=r"of numbers, but got list\. Lists and pandas objects: pass"):
        detection([0.1, 0.2], high)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="two insiders and two outsiders, but got 1 and 5"):
        detection_probability(np.zeros(1), np.zeros(5))
    with pytest.raises(InvalidArgumentError, match="one score per example"):
        detection_probability(np.zeros(0), np.zeros(5))


def test_outsiders_are_errors_that_only_abstaining_avoids() -> None:
    generator = torch.Generator().manual_seed(5)
    inside, outside = torch.rand(300, generator=generator), 0.8 * torch.rand(100, generator=generator)
    right = torch.rand(300, generator=generator) < inside
    measured = selective_with_outsiders(inside - 7, right, outside - 7)  # any scale will do
    for index in (0, 50, 399):
        threshold = measured.curve.threshold[index] + 1e-9
        answered, wrongly = inside - 7 >= threshold - 2e-9, int((outside - 7 >= threshold - 2e-9).sum())
        total = int(answered.sum()) + wrongly
        assert float(measured.curve.coverage[index]) == pytest.approx(total / 400)
        assert float(measured.curve.risk[index]) == pytest.approx((int((~right[answered]).sum()) + wrongly) / total)
    assert float(measured.curve.risk[-1]) == pytest.approx((int((~right).sum()) + 100) / 400)
    assert measured.aurc_interval.low < measured.aurc < measured.aurc_interval.high
    assert measured.outsider_share == 0.25


def test_the_share_of_outsiders_weights_them() -> None:
    inside, right, outside = torch.rand(200), torch.arange(200) % 5 > 0, torch.rand(50)
    rare = selective_with_outsiders(inside, right, outside, outsider_share=1e-9, replicates=2)
    probs = torch.stack((0.5 + inside / 2, 0.5 - inside / 2), -1)
    assert rare.aurc == pytest.approx(aurc(probs, (~right).long()), abs=0.02)
    assert float(rare.curve.risk[-1]) == pytest.approx(0.2, abs=1e-6)
    half = selective_with_outsiders(inside, right, outside, outsider_share=0.5, replicates=2)
    assert float(half.curve.risk[-1]) == pytest.approx(0.6)
    dear = selective_with_outsiders(inside, right, outside, outsider_share=0.5, outsider_cost=3, replicates=2)
    assert float(dear.curve.risk[-1]) == pytest.approx((0.2 + 3) / 4)
