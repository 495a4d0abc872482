"""Rows that are set aside: a fair share of every class, whole groups, and always something left to train on."""

from __future__ import annotations

import numpy as np
import pytest

from calibayes.crossfit import rows_to_set_aside
from calibayes.errors import DataError, InvalidArgumentError


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3, 0.45, 0.5])
def test_the_share_is_that_of_every_class(share: float) -> None:
    labels = np.repeat([0, 1, 2], [400, 200, 60])
    found = rows_to_set_aside(labels, share, seed=1)
    for label, count in enumerate((400, 200, 60)):
        assert int((labels[found] == label).sum()) == pytest.approx(share * count, abs=1 + 0.02 * count)


def test_every_row_has_the_same_chance_also_in_a_small_class() -> None:
    labels = np.repeat([0, 1], [7, 93])
    times = np.zeros(100)
    for seed in range(600):
        times[rows_to_set_aside(labels, 0.2, seed=seed)] += 1
    # Binomial with 600 draws: a standard deviation of 0.016.
    assert np.abs(times / 600 - 0.2).max() < 0.07
    assert times[:7].mean() / 600 == pytest.approx(0.2, abs=0.03)


def test_groups_are_never_on_both_sides() -> None:
    rng = np.random.default_rng(0)
    groups, labels = rng.integers(60, size=500), rng.integers(3, size=500)
    found = rows_to_set_aside(labels, 0.2, seed=0, groups=groups)
    rest = np.setdiff1d(np.arange(500), found)
    assert not set(groups[found]) & set(groups[rest])
    assert 60 < len(found) < 140


def test_a_class_always_keeps_two_rows_to_train_on() -> None:
    for seed in range(40):
        labels = np.repeat([0, 1, 2], [3, 3, 50])
        rest = np.setdiff1d(np.arange(56), rows_to_set_aside(labels, 0.5, seed=seed))
        assert np.bincount(labels[rest]).min() >= 2


def test_no_more_than_are_useful() -> None:
    labels = np.arange(5000) % 4
    found = rows_to_set_aside(labels, 0.5, seed=0, most=300)
    assert len(found) == 300
    assert np.bincount(labels[found]).min() > 45
    groups = np.arange(5000) // 7
    found = rows_to_set_aside(labels, 0.5, seed=0, groups=groups, most=300)
    assert 293 < len(found) <= 300
    assert not set(groups[found]) & set(np.delete(groups, found))


def test_the_seed_decides() -> None:
    labels = np.arange(100) % 2
    first, again, other = (rows_to_set_aside(labels, 0.2, seed=seed).tolist() for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize("share", [0, 0.01, 0.6, 1, True, "0.2", float("nan")])
def test_what_is_no_share_is_refused(share: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"share of the rows from 0.05 to 0.5, such as 0.2, but got"):
        rows_to_set_aside(np.arange(10) % 2, share, seed=0)  # type: ignore[arg-type]


def test_nothing_to_set_aside_is_said() -> None:
    with pytest.raises(DataError, match="No rows can be set aside"):
        rows_to_set_aside(np.array([0, 0, 1, 1]), 0.5, seed=0)
