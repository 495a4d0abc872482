"""Differences between sets of trainings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ttest_rel
from tests.reproduction.made_up import made_up

from reproduction.experiment import ExperimentPart
from reproduction.experiment_results import PartResults, at_best_epoch, at_equal_accuracy, between, settled
from reproduction.experiments import experiment

PART = experiment("newsgroups-lambda").parts[0]


def test_differences_are_paired_by_seed_and_have_students_interval() -> None:
    ours, theirs = np.random.default_rng(0).normal(size=(2, 5))
    first = {seed: ours[seed] for seed in (3, 1, 0, 4, 2)}
    gap = between("ECE", first, {seed: theirs[seed] for seed in range(5)})
    interval = ttest_rel(ours, theirs).confidence_interval(0.95)
    assert (gap.value, gap.low, gap.high) == pytest.approx(((ours - theirs).mean(), interval.low, interval.high))
    wider = ttest_rel(ours, theirs).confidence_interval(1 - 0.05 / 3)
    assert between("ECE", first, dict(enumerate(theirs)), comparisons=3).high == pytest.approx(wider.high)


def test_seeds_that_one_lacks_do_not_count() -> None:
    gap = between("ECE", {0: 1.0, 1: 2.0, 2: 7.0}, {1: 1.0, 0: 1.0, 5: 0.0})
    assert (gap.value, gap.seeds) == (0.5, 2)
    alone = between("ECE", {0: 1.0}, {0: 0.25})
    assert (alone.value, str(alone)) == (0.75, "ECE: +75.0")
    assert math.isnan(alone.low)
    assert math.isnan(between("ECE", {0: 1.0}, {1: 0.25}).value)


def test_scores_are_averaged_over_the_last_quarter() -> None:
    part = made_up(PART, 0.4, way=[(0.9, 0.1)] * 6 + [(0.2, 0.1)])  # eight looks: the last two count
    assert settled(part, "test", "ece")[4] == pytest.approx(0.3)


def test_the_best_epoch_is_chosen_on_validation_examples() -> None:
    part = made_up(PART, 0.4, way=[(0.9, 0.1), (0.2, 0.1), (0.3, 0.1)])
    for result in part.results:
        for look, nll in zip(result["epochs"], (2.0, 1.0, 1.5, 3.0), strict=True):
            look["validation"]["nll"] = nll
            look["test"]["nll"] = -nll
    assert at_best_epoch(part, "test", "ece")[4] == pytest.approx(0.2)


def test_equal_accuracy_is_between_looks() -> None:
    first = made_up(PART, 0.3, 0.61, way=[(0.1, 0.41), (0.5, 0.3)])  # a step back on the way does not count
    second = made_up(PART, 0.2, 0.52, way=[(0.1, 0.2)])
    a, b = at_equal_accuracy(first, second, "test", "ece")
    assert a[4] == pytest.approx(0.2)  # 0.51, a point below the lower maximum, is half-way between 0.41 and 0.61
    assert b[4] == pytest.approx(0.1 + 0.1 * 0.31 / 0.32)


def test_equal_accuracy_pairs_by_seed() -> None:
    whole = made_up(PART, 0.2, 0.6)
    some = made_up(ExperimentPart(PART.name, PART.settings[2:4]), 0.2, 0.6)
    a, b = at_equal_accuracy(whole, PartResults(some.part, some.settings, some.results), "test", "ece")
    assert set(a) == set(b) == {2, 3}
