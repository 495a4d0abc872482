"""Columns of every kind: missing values, categories, texts, dates, sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import calibayes as cb
from calibayes.errors import InvalidArgumentError
from calibayes.estimator.table_columns import TableColumns
from calibayes.metrics import nll

METHODS = ["logistic-regression", "ema", pytest.param("boosted-trees", marks=pytest.mark.boosting)]


def frame(rows: int = 240) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns of all kinds; the class depends on a text, a category, and whether a number is missing."""
    draws = np.random.default_rng(0)
    colour, size = draws.choice(["red", "green", "blue"], rows), draws.integers(0, 4, rows)
    missing = draws.random(rows) < 0.3
    score = 2.0 * (colour == "red") + 2.0 * (size == 2) + 2.0 * missing - 2.0
    y = (draws.random(rows) < 1 / (1 + np.exp(-2 * score))).astype(int)
    made = pd.DataFrame(
        {
            "number": np.where(missing, np.nan, draws.normal(size=rows)),
            "colour": pd.Series(colour, dtype="str"),
            "size": pd.Categorical(size),
            "flag": draws.random(rows) < 0.5,
            "count": pd.array(draws.integers(0, 5, rows), dtype="Int64"),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(draws.integers(0, 900, rows), "D"),
        }
    )
    made.loc[::20, "colour"] = None
    made.loc[::15, "count"] = pd.NA
    made.loc[::30, "when"] = pd.NaT
    return made, y


def settings(method: str) -> dict[str, Any]:
    return {"random_state": 0, **({"epochs": 30, "learning_rate": 0.01} if method == "ema" else {})}


@pytest.mark.parametrize("method", METHODS)
def test_frames_with_columns_of_all_kinds(method: str) -> None:
    x, y = frame(400)
    found = cb.CalibayesClassifier(method, **settings(method)).fit(x[:240], y[:240])
    base = nll(np.full(160, y[:240].mean()), y[240:])
    assert nll(found.predict_proba(x[240:]), y[240:]) < base - (0.03 if method == "boosted-trees" else 0.15)
    assert found.feature_names_in_.tolist() == list(x.columns)
    unseen = x[240:].assign(colour="violet", size=pd.Categorical([99] * 160))
    assert np.isfinite(found.predict_proba(unseen)).all()
    with pytest.raises(ValueError, match="feature names"):
        found.predict(x[240:].rename(columns={"colour": "color"}))
    with pytest.warns(UserWarning, match="valid feature names"):
        unnamed = found.predict_proba(x[240:].to_numpy())
    np.testing.assert_array_equal(unnamed, found.predict_proba(x[240:]))


def test_codes_are_those_of_the_training_rows_and_others_share_one() -> None:
    x = pd.DataFrame({"a": ["p", "q", "p", None, None, "r"], "b": [1.0, np.nan, 2, 3, 4, 5]})
    columns = TableColumns.fit(x)
    assert columns.numbers == [1]
    assert columns.categories == [(0, 3)]  # missing and p; q and r occur once
    codes = columns.rows(pd.DataFrame({"a": ["p", None, "q", "never"], "b": [1.0, 2, np.nan, 3]}))
    assert codes[0, 0] != codes[1, 0]
    assert codes[2, 0] == codes[3, 0] == 2
    assert np.isnan(codes[2, 1])


def test_numbers_that_float32_cannot_tell_apart_keep_their_order() -> None:
    x = np.column_stack([1.7e9 + np.arange(50.0), 1e200 * np.arange(50.0), np.arange(50.0), np.full(50, np.nan)])
    rows = TableColumns.fit(x).rows(x)
    assert (np.diff(rows[:, :3], axis=0) > 0).all()
    np.testing.assert_array_equal(rows[:, 2], np.arange(50))
    assert np.isnan(rows[:, 3]).all()
    assert np.isfinite(TableColumns.fit(x[:, :3]).rows(np.full((1, 3), 1e300))).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_a_sparse_matrix_is_the_dense_one(method: str, kind: Any) -> None:
    x, y = make_classification(120, 6, random_state=0)
    x = np.where(np.abs(x) < 0.5, 0, x)
    given = {**settings(method), **({"epochs": 2} if method == "ema" else {})}
    one, other = (cb.CalibayesClassifier(method, **given).fit(each, y) for each in (kind(x), x))
    np.testing.assert_allclose(one.predict_proba(kind(x)), other.predict_proba(x), atol=1e-6)


def test_wide_sparse_matrices_are_never_dense_and_as_good_as_logistic_regression() -> None:
    x = sparse.random(600, 30_000, density=0.002, random_state=0, format="csr")
    informative = sparse.random(600, 20, density=0.3, random_state=1, format="csr")
    logits = np.asarray(informative.sum(1)).ravel() * 4
    y = (logits > np.median(logits)).astype(int)
    x = sparse.hstack([x, 5 * informative], format="csr")
    found = cb.CalibayesClassifier(random_state=0).fit(x[:400], y[:400])
    assert found.method_ == "logistic-regression"
    plain = LogisticRegression(max_iter=500).fit(x[:400], y[:400])
    assert nll(found.predict_proba(x[400:]), y[400:]) < nll(plain.predict_proba(x[400:]), y[400:]) + 0.02
    np.testing.assert_allclose(found.predict_proba(x[:5].toarray()), found.predict_proba(x[:5]), atol=1e-9)
    assert (found.predict_uncertainty(x[400:]).between > 0).any()
    huge = sparse.csr_matrix((40_000, 30_000))
    with pytest.raises(InvalidArgumentError, match=r"'ema' needs a dense matrix, .* would take 4.5 GB"):
        cb.CalibayesClassifier("ema").fit(huge, np.arange(40_000) % 2)


def test_tables_of_other_libraries_become_frames() -> None:
    x, y = frame()
    one, other = (cb.CalibayesClassifier("logistic-regression", random_state=0).fit(each, y) for each in (pa.table(x), x))
    np.testing.assert_allclose(one.predict_proba(pa.table(x)), other.predict_proba(x))


def test_what_no_table_can_have() -> None:
    x, y = frame()
    made = cb.CalibayesClassifier("logistic-regression", random_state=0)
    with pytest.raises(InvalidArgumentError, match="infinity: column 'number', row 3"):
        made.fit(x.assign(number=np.where(np.arange(240) == 3, np.inf, 0.0)), y)
    with pytest.raises(ValueError, match="infinity"):
        made.fit(np.where(np.arange(240)[:, None] == 3, np.inf, 0.0), y)
    with pytest.raises(InvalidArgumentError, match="numbers, texts or categories in column 'colour'"):
        made.fit(x.assign(colour=pd.Series([[1]] * 240, dtype=object)), y)
    with pytest.raises(InvalidArgumentError, match="Expected numbers in column 'number', as in training"):
        made.fit(x, y).predict(x.assign(number="one"))
    with pytest.raises(ValueError, match="contains NaN"):
        cb.CalibayesClassifier("fnn", cv=None).fit(x[["number"]], y)
