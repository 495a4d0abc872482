"""Folds: every row held out once, classes level, groups and times respected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibayes.crossfit.folds import are_copies, copies_of_rows, forward_folds, stratified_folds
from calibayes.errors import DataError, InvalidArgumentError


@settings(max_examples=60, deadline=None)
@given(counts=st.lists(st.integers(2, 40), min_size=2, max_size=6), folds=st.integers(2, 6), seed=st.integers(0, 100))
def test_every_row_is_held_out_once_and_classes_differ_by_one_row(counts: list[int], folds: int, seed: int) -> None:
    labels = np.repeat(np.arange(len(counts)), counts)
    if folds > len(labels):
        folds = 2
    found = stratified_folds(labels, folds, seed=seed)
    assert np.array_equal(np.sort(np.concatenate([fold.held_out for fold in found])), np.arange(len(labels)))
    of_class = np.stack([np.bincount(labels[fold.held_out], minlength=len(counts)) for fold in found])
    assert (np.ptp(of_class, axis=0) <= 1).all()
    for fold in found:
        assert np.array_equal(np.union1d(fold.train, fold.held_out), np.arange(len(labels)))
        assert set(labels[fold.train]) == set(labels)
    sizes = [len(fold.held_out) for fold in found]
    assert max(sizes) - min(sizes) <= max(1, len(counts) // 2)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), largest=st.integers(1, 8))
def test_groups_stay_together_and_folds_stay_level(seed: int, largest: int) -> None:
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(100), rng.integers(1, largest + 1, 100))
    labels = rng.integers(0, 3, len(groups))
    found = stratified_folds(labels, 5, seed=seed, groups=groups)
    for fold in found:
        assert not set(groups[fold.train]) & set(groups[fold.held_out])
    sizes = [len(fold.held_out) for fold in found]
    assert max(sizes) - min(sizes) <= 2 * largest


def test_another_seed_gives_other_folds_and_the_same_seed_the_same() -> None:
    labels = np.arange(60) % 3
    first, again, other = (stratified_folds(labels, 3, seed=seed)[0].held_out for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_class_within_one_group_is_refused() -> None:
    labels, groups = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 1, 2, 3, 4, 4])
    with pytest.raises(DataError, match="All rows of class 1 are copies of one another or belong to one group"):
        stratified_folds(labels, 2, seed=0, groups=groups)


@pytest.mark.parametrize("folds", [1, 0, -1, 7, True, 2.0])
def test_odd_numbers_of_folds_are_quoted(folds: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"from 2 to the 6 rows, but got {folds}"):
        stratified_folds(np.array([0, 1, 0, 1, 0, 1]), folds, seed=0)


@pytest.mark.parametrize("seed", range(5))
def test_no_member_trains_on_what_comes_later(seed: int) -> None:
    rng = np.random.default_rng(seed)
    time, labels = rng.integers(0, 50, 300).astype(float), rng.integers(0, 4, 300)
    found = forward_folds(labels, 4, time=time)
    assert len(found) == 4
    for fold in found:
        assert time[fold.train].max() < time[fold.held_out].min()
        assert set(labels[fold.train]) == set(labels)
    held_out = np.concatenate([fold.held_out for fold in found])
    assert len(set(held_out)) == len(held_out)
    assert len(held_out) > 0.7 * len(labels)


def test_a_class_that_comes_last_cannot_be_cut_by_time() -> None:
    labels = np.array([0] * 20 + [1])
    with pytest.raises(DataError, match="class 1 first occurs in row 21 of 21"):
        forward_folds(labels, 3, time=np.arange(21.0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_copies_are_what_numpy_finds(dtype: type[np.generic]) -> None:
    rows = np.random.default_rng(0).integers(0, 3, (400, 5)).astype(dtype)
    ours, theirs = copies_of_rows(rows), np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    pairs = set(zip(ours.tolist(), theirs.tolist(), strict=True))
    assert len(pairs) == len(set(ours.tolist())) == len(set(theirs.tolist()))


@pytest.mark.parametrize("times", [2, 3, 7])
def test_a_table_that_is_there_several_times_consists_of_copies(times: int) -> None:
    rng = np.random.default_rng(0)
    keys, labels = np.tile(copies_of_rows(rng.normal(size=(150, 3))), times), np.tile(rng.integers(0, 3, 150), times)
    assert are_copies(keys, labels)


def test_a_table_of_few_patterns_has_equal_rows_by_nature() -> None:
    rng = np.random.default_rng(0)
    keys = copies_of_rows(rng.integers(0, 3, (2000, 5)))  # 243 patterns
    assert not are_copies(keys, rng.integers(0, 2, 2000))  # of both classes
    assert not are_copies(keys % 20, keys % 2)  # few enough for all of them to be learnt
