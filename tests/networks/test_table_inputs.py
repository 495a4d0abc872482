"""The first layer for tables, against NumPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from calibayes.errors import InvalidArgumentError
from calibayes.networks.table_inputs import TableInputs

RNG = np.random.default_rng(0)


def test_positions_are_those_of_numpys_interpolation() -> None:
    rows = RNG.lognormal(size=(500, 2)).astype(np.float32)
    layer = TableInputs([0, 1], bins=8).fit(rows)
    new = RNG.lognormal(size=(50, 2)).astype(np.float32)
    found = layer(torch.from_numpy(new)).numpy()
    for column in range(2):
        edges = np.quantile(rows[:, column], np.linspace(0, 1, 9))
        place = np.interp(new[:, column], edges, np.arange(9))
        expected = np.clip(place[:, None] - np.arange(8), 0, 1)
        assert np.allclose(found[:, 8 * column : 8 * column + 8], expected, atol=1e-5)


def test_scores_of_many_bins_are_normal_scores_of_ranks() -> None:
    rows = RNG.exponential(size=(2000, 1)).astype(np.float32)
    found = TableInputs([0], bins=500).fit(rows)(torch.from_numpy(rows)).numpy()[:, 500]
    ranks = (np.argsort(np.argsort(rows[:, 0])) + 0.5) / len(rows)
    inside = (ranks > 0.05) & (ranks < 0.95)
    assert np.allclose(found[inside], norm.ppf(ranks[inside]), atol=0.02)


def test_any_increasing_transform_of_a_column_gives_the_same_scores_at_training_rows() -> None:
    rows = RNG.normal(size=(301, 1)).astype(np.float32)
    plain, curved = (TableInputs([0], bins=300).fit(x)(torch.from_numpy(x)) for x in (rows, np.exp(rows)))
    assert torch.allclose(plain[:, 300], curved[:, 300], atol=1e-3)


def test_missing_values_are_zeros_with_a_flag() -> None:
    rows = np.array([[1.0], [2.0], [np.nan], [4.0]], dtype=np.float32)
    found = TableInputs([0], bins=2).fit(rows)(torch.tensor([[np.nan], [2.0]]))
    assert found[0].tolist() == [0, 0, 0, 1]
    assert found[1, -1] == 0
    assert found[1, 0] > 0


def test_categories_are_scikit_learns_one_hot_columns() -> None:
    codes = RNG.integers(0, 4, (40, 1)).astype(np.float32)
    found = TableInputs([], [(0, 4)])(torch.from_numpy(codes)).numpy()
    assert np.array_equal(found, OneHotEncoder(categories=[np.arange(4)], sparse_output=False).fit_transform(codes))
    unknown = TableInputs([], [(0, 4)])(torch.tensor([[4.0], [-1.0], [np.nan]]))
    assert not unknown.any()


def test_frequent_values_have_columns_and_rare_ones_none() -> None:
    rows = np.concatenate([np.zeros(50), np.full(30, 7.0), np.full(2, 9.0), np.arange(20, 38)]).astype(np.float32)[:, None]
    layer = TableInputs([0], bins=4, frequent=3).fit(rows)
    found = layer(torch.tensor([[0.0], [7.0], [9.0], [3.5]]))[:, -3:]
    assert found.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_without_bins_numbers_are_those_of_scikit_learns_scaler_cut_off_at_four() -> None:
    rows = RNG.normal(3.0, 5.0, size=(200, 2)).astype(np.float32)
    rows[::7, 1] = np.nan
    layer = TableInputs([0, 1], bins=0).fit(rows)
    new = RNG.normal(3.0, 15.0, size=(100, 2)).astype(np.float32)
    found = layer(torch.from_numpy(new)).numpy()
    expected = StandardScaler().fit(rows).transform(new)
    assert (np.abs(expected) > 4).any()
    assert np.allclose(found, np.hstack([expected.clip(-4, 4), np.zeros((100, 2))]), atol=1e-5)
    assert layer(torch.tensor([[np.nan, 3.0]]))[0, [0, 2, 3]].tolist() == [0, 1, 0]
    assert layer.width == 4


@pytest.mark.parametrize("bins", [0, 4])
@pytest.mark.parametrize("rows", [np.full((5, 1), 3.0), np.full((5, 1), np.nan), np.array([[3e38], [-3e38], [0.0]])])
def test_odd_columns_stay_finite(rows: np.ndarray, bins: int) -> None:
    layer = TableInputs([0], bins=bins).fit(rows.astype(np.float32))
    found = layer(torch.tensor([[3.0], [-3e38], [3e38], [np.nan]]))
    assert found.shape == (4, layer.width)
    assert found.isfinite().all()


def test_no_column_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one column"):
        TableInputs([])
