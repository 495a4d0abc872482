"""Prediction sets: exact coverage laws by simulation, sizes beside the smallest possible, and what is refused."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.metrics.simulated import classifier
from torch import Tensor

from calibayes.acting import ActingWarning, ConformalScore, PredictionSets, conformal_sets, examples_needed, set_coverage
from calibayes.errors import InvalidArgumentError, InvalidTargetsError, ModelFileError
from calibayes.predictive import Predictive

SCORES = ("lac", "aps", "raps", "top-k")


def naive_scores(score: ConformalScore, probs: Tensor, share: float = 1.0) -> list[list[float]]:
    """The scores by their definitions, one class at a time."""
    rows = []
    for row in probs.tolist():
        order = sorted(range(len(row)), key=lambda k: (-row[k], k))
        scores = [0.0] * len(row)
        for place, k in enumerate(order):
            before = sum(row[j] for j in order[:place])
            scores[k] = {
                "lac": 1 - row[k],
                "aps": before + share * row[k],
                "raps": before + share * row[k] + score.penalty * max(0, place + 1 - score.free_ranks),
                "top-k": place + share,
            }[score.name]
        scores[order[0]] = -1.0
        rows.append(scores)
    return rows


@pytest.mark.parametrize("name", SCORES)
def test_scores_equal_their_definitions(name: Any) -> None:
    probs = classifier(40, 0.7, seed=0, classes=5)[0].float().double()
    for score in (ConformalScore(name), ConformalScore(name, penalty=0.3, free_ranks=2)):
        assert score.of_classes(probs).numpy() == pytest.approx(np.array(naive_scores(score, probs)), abs=1e-12)


@pytest.mark.parametrize("name", SCORES[1:])
def test_randomised_scores_lie_below_the_others_by_a_uniform_share(name: Any) -> None:
    probs, _ = classifier(4000, 0.7, seed=1, classes=4)
    whole, part = ConformalScore(name).of_classes(probs), ConformalScore(name, seed=3).of_classes(probs)
    second = probs.topk(2, -1).indices[:, 1:]
    unit = torch.ones_like(probs) if name == "top-k" else probs
    share = 1 - ((whole - part) / unit).gather(-1, second)[:, 0]
    assert stats.kstest(share.numpy(), "uniform").pvalue > 0.01
    assert not torch.equal(part, ConformalScore(name, seed=4).of_classes(probs))


@pytest.mark.parametrize("name", SCORES)
def test_coverage_follows_the_beta_binomial_law(name: Any) -> None:
    """With scores without ties, the number of test examples covered is beta-binomial, exactly."""
    calibration, test, level = 40, 100, 0.9
    rank = 37  # the smallest integer of at least 41 · 0.9
    probs, labels = classifier(400 * (calibration + test), 0.8, seed=2, classes=5)
    covered = []
    for run in torch.arange(len(probs)).split(calibration + test):
        first, second = run[:calibration], run[calibration:]
        sets = conformal_sets(probs[first], labels[first], level, name, seed=run[0].item()).predict(probs[second])
        covered.append(int(sets.gather(-1, labels[second][:, None]).sum()))
    law = stats.betabinom(test, rank, calibration + 1 - rank)
    spread = np.random.default_rng(0).random(len(covered))
    uniform = law.cdf(np.array(covered) - 1) + spread * law.pmf(covered)
    assert stats.kstest(uniform, "uniform").pvalue > 0.001
    assert np.mean(covered) / test == pytest.approx(rank / (calibration + 1), abs=4 * law.std() / test / 400**0.5)


@pytest.mark.parametrize("name", SCORES)
def test_ties_and_determinism_only_add_coverage(name: Any) -> None:
    probs, labels = classifier(60_000, 0.8, seed=3, classes=5)
    rounded = (20 * probs).round().clamp_min(1) / (20 * probs).round().clamp_min(1).sum(-1, keepdim=True)
    sets = conformal_sets(rounded[:50_000], labels[:50_000], 0.9, name)
    assert set_coverage(sets.predict(rounded[50_000:]), labels[50_000:]).coverage_interval.high > 0.9


def test_lac_sets_are_nearly_as_small_as_any_can_be() -> None:
    probs, labels = classifier(41_000, 1.0, seed=4, classes=6)  # the true probabilities
    test, level = slice(1000, None), 0.9
    sets = conformal_sets(probs[:1000], labels[:1000], level)
    measured = set_coverage(sets.predict(probs[test]), labels[test])
    # The smallest sets of a coverage hold all classes above one probability, the same for all examples.
    every = probs[test].flatten().sort(descending=True).values
    enough = int(torch.searchsorted(every.cumsum(0), measured.coverage * len(probs[test])))
    assert measured.mean_size <= 1.02 * enough / len(probs[test])
    low, high = sets.coverage_range(0.999)
    assert low < measured.coverage < high


def test_always_holding_the_best_class_gives_smaller_sets_than_adding_it_to_empty_ones() -> None:
    probs, labels = classifier(20_000, 1.0, seed=5, classes=5)
    ordered, order = probs.sort(-1, descending=True)
    plain = torch.zeros_like(probs).scatter(-1, order, ordered.cumsum(-1))  # of APS: often a sure example has an empty set
    threshold = plain[:10_000].gather(-1, labels[:10_000, None])[:, 0].kthvalue(8001).values
    theirs = (plain <= threshold)[10_000:].scatter(-1, probs[10_000:].argmax(-1, keepdim=True), True)
    ours = conformal_sets(probs[:10_000], labels[:10_000], 0.8, "aps").predict(probs[10_000:])
    assert bool((ours <= theirs).all())
    assert int(ours.sum()) < 0.95 * int(theirs.sum())
    assert set_coverage(ours, labels[10_000:]).coverage == pytest.approx(0.8, abs=0.02)
    assert set_coverage(theirs, labels[10_000:]).coverage > 0.82


def test_a_classifier_that_is_right_more_often_than_asked_gives_one_class_each() -> None:
    probs, labels = classifier(4000, 1.0, seed=6, classes=3)
    sets = conformal_sets(probs, labels, level=0.4)
    assert sets.predict(probs).sum(-1).unique().tolist() == [1]
    low, high = sets.coverage_range()
    assert low < float((probs.argmax(-1) == labels).double().mean()) < high == 1


def test_each_class_is_covered_by_itself() -> None:
    probs, labels = classifier(60_000, 1.0, seed=7, classes=4)
    probs = probs * torch.tensor([1, 1, 1, 0.3])  # the classifier neglects the last class
    probs = probs / probs.sum(-1, keepdim=True)
    old, new = slice(0, 30_000), slice(30_000, None)
    together = set_coverage(conformal_sets(probs[old], labels[old]).predict(probs[new]), labels[new])
    by_class = set_coverage(conformal_sets(probs[old], labels[old], per="class").predict(probs[new]), labels[new])
    assert together.class_coverage[3] < 0.85
    assert by_class.class_coverage == pytest.approx([0.9] * 4, abs=0.02)  # four standard deviations of old and new together


def test_each_group_is_covered_by_itself() -> None:
    probs, labels = classifier(60_000, 1.0, seed=8, classes=4)
    hard = probs.amax(-1) < 0.45
    labels[hard] = labels[hard].flip(0)  # the probabilities say nothing about their labels
    old, new = slice(0, 30_000), slice(30_000, None)
    together = conformal_sets(probs[old], labels[old]).predict(probs[new])
    apart = conformal_sets(probs[old], labels[old], per="group", groups=hard[old]).predict(probs[new], hard[new])
    for group, low, high in ((hard[new], 0.0, 0.88), (~hard[new], 0.905, 1.0)):
        assert low < set_coverage(together[group], labels[new][group]).coverage < high
        assert set_coverage(apart[group], labels[new][group]).coverage == pytest.approx(0.9, abs=0.02)


@settings(max_examples=40)
@given(st.sampled_from(SCORES), st.floats(0.05, 0.99), st.integers(0, 10_000), st.booleans())
def test_sets_are_never_empty_and_a_row_does_not_depend_on_its_batch(name: Any, level: float, seed: int, random: bool) -> None:
    probs, labels = classifier(60, 0.5, seed=seed, classes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ActingWarning)
        sets = conformal_sets(probs[:30], labels[:30], level, name, seed=seed if random else None)
        lower = conformal_sets(probs[:30], labels[:30], 0.9 * level, name, seed=seed if random else None)
    whole = sets.predict(probs[30:])
    assert bool(whole.gather(-1, probs[30:].argmax(-1, keepdim=True)).all())
    assert torch.equal(whole, torch.cat([sets.predict(row[None]) for row in probs[30:]]))
    again = PredictionSets.from_dict(json.loads(json.dumps(sets.to_dict(), allow_nan=False)))
    assert torch.equal(again.predict(probs[30:]), whole)
    assert bool((lower.predict(probs[30:]) <= whole).all())


@pytest.mark.parametrize("name", SCORES)
def test_sets_are_the_same_for_probabilities_in_float32_and_in_float64(name: Any) -> None:
    """Votes of twenty trees: thousands of examples share a score with the threshold."""
    generator = torch.Generator().manual_seed(13)
    votes = torch.multinomial(classifier(4000, 1.0, seed=13, classes=3)[0], 20, replacement=True, generator=generator)
    shares = torch.nn.functional.one_hot(votes, 3).sum(1).double() / 20
    labels = votes[:, 0]
    for level in (0.7, 0.8, 0.9, 0.95):
        double, single = (conformal_sets(each[:1000], labels[:1000], level, name, seed=0) for each in (shares, shares.float()))
        expected = double.predict(shares)
        assert torch.equal(double.predict(shares.float()), expected)
        assert torch.equal(single.predict(shares), expected)


def test_the_short_forms_are_the_same() -> None:
    probs, labels = classifier(500, 1.0, seed=12)
    predictive = Predictive(probs, torch.zeros(500))
    for by_class, per in ((False, "all"), (True, "class")):
        short = PredictionSets.fit(predictive, labels.numpy(), coverage=0.8, score="aps", by_class=by_class)
        long = conformal_sets(probs.numpy(), labels, 0.8, ConformalScore("aps"), per)  # type: ignore[arg-type]
        assert torch.equal(short.thresholds, long.thresholds)
        assert torch.equal(short.predict(predictive), long.predict(probs))
    column = conformal_sets(probs[:, 0], (labels != 0).long())  # of class 1, for two classes
    assert column.predict(probs[:, 0]).shape == (500, 2)


def test_groups_have_names_that_a_file_can_hold() -> None:
    probs, labels = classifier(400, 1.0, seed=8)
    groups = np.array(["day", "night"])[np.arange(400) % 2]
    sets = conformal_sets(probs, labels, per="group", groups=groups)
    again = PredictionSets.from_dict(json.loads(json.dumps(sets.to_dict())))
    assert torch.equal(again.predict(probs, list(groups)), sets.predict(probs, groups))
    with pytest.raises(InvalidArgumentError, match="no calibration examples of the group 'dusk'"):
        sets.predict(probs[:1], ["dusk"])


def test_too_few_examples_warn_with_the_number_needed_and_give_all_classes() -> None:
    probs, labels = classifier(8, 1.0, seed=9)
    with pytest.warns(ActingWarning, match=r"There are 8 calibration examples. A level of 0.9 needs at least 9"):
        sets = conformal_sets(probs, labels, 0.9)
    assert bool(sets.predict(probs).all())
    assert sets.coverage_range() == (1.0, 1.0)
    probs, labels = classifier(200, 1.0, seed=9)
    labels[labels == 2] = 1
    labels[:5] = 2
    with pytest.warns(ActingWarning, match=r"too few calibration examples of 1 class: 2 \(5\).* for each class"):
        by_class = conformal_sets(probs, labels, 0.9, per="class")
    assert bool(by_class.predict(probs)[:, 2].all())
    with pytest.warns(ActingWarning, match=r"There is 1 calibration example\. A level of 0.9995 needs at least 1,999;"):
        conformal_sets(probs[:1], labels[:1], 0.9995)
    with pytest.warns(ActingWarning, match=r"too few calibration examples of \d classes: "):
        conformal_sets(probs[:9], labels[:9], 0.9, per="class")


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_the_number_needed_is_the_smallest_that_gives_a_finite_threshold(level: float) -> None:
    least = examples_needed(level)
    probs, labels = classifier(least, 1.0, seed=10)
    assert bool(conformal_sets(probs, labels, level).thresholds.isfinite().all())
    if least > 1:
        with pytest.warns(ActingWarning):
            assert bool(conformal_sets(probs[1:], labels[1:], level).thresholds.isinf().all())


def test_the_number_needed_for_a_level_near_one() -> None:
    assert [examples_needed(level) for level in (0.999, 0.9999, 0.99999, 0.999999)] == [999, 9999, 99_999, 999_999]


def test_what_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Expected `coverage` to lie between 0 and 1, both excluded, but got 1\.0"):
        PredictionSets.fit(torch.eye(2), torch.arange(2), coverage=1.0)
    probs, labels = classifier(50, 1.0, seed=11)
    with pytest.raises(InvalidArgumentError, match=r"Unknown `score` 'laq'. Did you mean 'lac'"):
        conformal_sets(probs, labels, score="laq")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="has its own seed: leave `seed=1` out"):
        conformal_sets(probs, labels, score=ConformalScore("aps", seed=0), seed=1)
    with pytest.raises(InvalidArgumentError, match="`level` to lie between 0 and 1"):
        conformal_sets(probs, labels, 1.0)
    with pytest.raises(InvalidArgumentError, match="`groups` with `per='group'`"):
        conformal_sets(probs, labels, groups=labels)
    with pytest.raises(InvalidArgumentError, match="50 rows, but got 49"):
        conformal_sets(probs, labels, per="group", groups=labels[1:])
    with pytest.raises(InvalidTargetsError):
        conformal_sets(probs, labels + 9)
    for missing, name in ((None, "None"), (float("nan"), "nan"), (np.float32("nan"), "nan"), (pd.NA, "<NA>"), (pd.NaT, "NaT")):
        with pytest.raises(
            InvalidArgumentError, match=rf"name the group of every row, but entry 3 is {name}\. Give rows without"
        ):
            conformal_sets(probs, labels, per="group", groups=["a", "b", 1, missing, *"c" * 46])
    sets = conformal_sets(probs, labels)
    with pytest.raises(InvalidArgumentError, match="for 4 classes, but `probs` has 3 columns"):
        sets.predict(torch.full((2, 3), 1 / 3))
    with pytest.raises(InvalidArgumentError, match="leave `groups` out"):
        sets.predict(probs, labels)
    with pytest.raises(ModelFileError, match="'other'"):
        PredictionSets.from_dict({"kind": "other"})
