"""The calibrated classifier: scikit-learn's checks, and every kind of input and split."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold, ShuffleSplit, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from calibayes.errors import InvalidArgumentError
from calibayes.metrics import nll
from calibayes.posthoc import CalibratedClassifier, calibrate
from calibayes.posthoc.folds import complete_rounds, row_keys, stratified_folds

Array = npt.NDArray[Any]


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        CalibratedClassifier(LogisticRegression(), cv=3),
        CalibratedClassifier(RidgeClassifier(tol=1e-12), method="temperature", cv=3, repeats=1),
    ]
)
def test_scikit_learn_finds_nothing_wrong(estimator: CalibratedClassifier, check: Callable[[Any], None]) -> None:
    check(estimator)


def table(n: int = 300, seed: int = 0) -> tuple[Array, Array]:
    x, y = make_classification(n, 8, n_informative=4, n_classes=3, flip_y=0.2, random_state=seed)
    return x, np.array(["low", "middle", "high"])[y]


def test_prefit_is_scikit_learns_temperature_scaling() -> None:
    x, y = table(600)
    base = LogisticRegression(C=100).fit(x[:300], y[:300])
    ours = CalibratedClassifier(base, method="temperature", cv="prefit").fit(x[300:], y[300:])
    theirs = CalibratedClassifierCV(FrozenEstimator(base), method="temperature").fit(x[300:], y[300:])
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), atol=1e-4)
    assert ours.estimators_ == [base]
    with pytest.raises(InvalidArgumentError, match="not trained on class 'other'"):
        ours.fit(x[:2], np.array(["low", "other"]))


def test_no_member_calibrates_rows_it_has_trained_on() -> None:
    """A nearest neighbour knows its own rows by heart: out of fold it is wrong where labels are drawn at random."""
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(200, 3)), generator.integers(0, 2, 200)
    model = calibrate(KNeighborsClassifier(1), "platt").fit(x, y)
    probs = model.predict_proba(x)
    assert np.abs(probs[:, 1] - y.mean()).max() < 0.25


def test_predictions_are_the_scaled_mean_of_the_members() -> None:
    x, y = table()
    model = calibrate(DecisionTreeClassifier(max_depth=4, random_state=0), "temperature", cv=3, repeats=2).fit(x, y)
    assert len(model.estimators_) == 6
    mean = np.mean([member.predict_proba(x) for member in model.estimators_], axis=0)
    np.testing.assert_allclose(model.predict_proba(x), model.scaling_.transform(mean))
    assert set(model.predict(x)) <= set(model.classes_) == {"low", "middle", "high"}
    np.testing.assert_allclose(np.exp(model.predict_log_proba(x)), model.predict_proba(x))


def test_it_calibrates_an_overconfident_classifier() -> None:
    x, y = table(3000)
    base = RandomForestClassifier(20, max_features=1, max_depth=3, random_state=0)
    model = calibrate(base, "auto", cv=3).fit(x[:600], y[:600])
    labels = np.searchsorted(model.classes_, y[600:])
    before = nll(base.fit(x[:600], y[:600]).predict_proba(x[600:]), labels)
    assert nll(model.predict_proba(x[600:]), labels) < before - 0.03


def test_every_kind_of_rows() -> None:
    x, y = table(90)
    frame = pd.DataFrame(x, columns=[f"column {i}" for i in range(8)])
    from_array, from_frame = (calibrate(LogisticRegression(), "temperature", cv=3).fit(rows, y) for rows in (x, frame))
    np.testing.assert_allclose(from_frame.predict_proba(frame), from_array.predict_proba(x))
    assert from_frame.feature_names_in_.tolist() == list(frame.columns)
    mixed = frame.assign(text=["a", "b", "c"] * 30)
    encoder = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    assert calibrate(encoder, "none", cv=3).fit(mixed, pd.Series(y)).predict_proba(mixed).shape == (90, 3)
    from_sparse = calibrate(LogisticRegression(), "temperature", cv=3).fit(sparse.coo_matrix(x), y)
    assert from_sparse.predict_proba(sparse.csr_array(x)).shape == (90, 3)
    texts = [f"word{i % 7} of class {label}" for i, label in enumerate(y)]
    from_texts = calibrate(make_pipeline(CountVectorizer(), LogisticRegression()), "temperature", cv=3).fit(texts, y)
    assert from_texts.score(texts, y) == 1


def test_groups_stay_together() -> None:
    x, y = table(120)
    groups = np.repeat(np.arange(24), 5)
    seen: list[Array] = []

    class Remembering(LogisticRegression):  # type: ignore[misc]
        def fit(self, rows: Array, labels: Array, sample_weight: Any = None) -> Remembering:
            seen.append(rows)
            super().fit(rows, labels)
            return self

    for cv in (3, GroupKFold(3)):
        seen.clear()
        CalibratedClassifier(Remembering(), method="temperature", cv=cv).fit(x, y, groups=groups)
        assert seen
        for rows in seen:
            trained = np.isin(x[:, 0], rows[:, 0])
            assert all(len(set(trained[groups == group])) == 1 for group in range(24))


def test_splitters_of_every_kind() -> None:
    x, y = table(120)
    for cv, members in (
        (StratifiedKFold(4), 4),
        (RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), 6),
        (ShuffleSplit(3, test_size=0.4, random_state=0), 3),
        ([(np.arange(60), np.arange(60, 120))], 1),
    ):
        model = calibrate(LogisticRegression(), "temperature", cv).fit(x, y)
        assert len(model.estimators_) == members
        assert model.predict_proba(x).shape == (120, 3)
    with pytest.raises(InvalidArgumentError, match="`repeats` with a number of folds only, but got repeats=2"):
        calibrate(LogisticRegression(), cv=StratifiedKFold(3), repeats=2).fit(x, y)


def test_a_class_with_one_row_is_still_predicted() -> None:
    x, y = table(60)
    y[0] = "rare"
    model = calibrate(LogisticRegression(), "temperature", cv=3, repeats=1).fit(x, y)
    probs = model.predict_proba(x)
    assert probs.shape == (60, 4)
    assert (probs[:, model.classes_.tolist().index("rare")] > 0).all()


def test_weights_that_the_classifier_does_not_take_count_for_the_scaling() -> None:
    x, y = table(120)
    with pytest.warns(UserWarning, match="KNeighborsClassifier takes no sample_weight"):
        calibrate(KNeighborsClassifier(), "temperature", cv=3).fit(x, y, sample_weight=np.ones(120))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({"method": "sigmoid"}, "but got 'sigmoid'"), ({"cv": 1}, "at least 2 folds"), ({"cv": "pre-fit"}, "but got 'pre-fit'")],
)
def test_what_makes_no_sense_is_named(arguments: dict[str, Any], error: str) -> None:
    x, y = table(30)
    with pytest.raises(InvalidArgumentError, match=error):
        calibrate(LogisticRegression(), **arguments).fit(x, y)
    with pytest.raises(InvalidArgumentError, match="at least two classes in `y`, but got 1 class"):
        calibrate(LogisticRegression()).fit(x, np.zeros(30))


def test_folds_keep_copies_together_and_shares_alike() -> None:
    generator = np.random.default_rng(0)
    keys = generator.integers(0, 60, 200)
    labels = (keys % 3).astype(np.intp)
    folds = stratified_folds(keys, labels, 4, generator)
    held_out = np.concatenate([rows for _, rows in folds])
    assert sorted(held_out) == list(range(200))
    for rows, others in folds:
        assert not set(keys[rows]) & set(keys[others])
        assert np.abs(np.bincount(labels[others]) / np.bincount(labels) - 0.25).max() < 0.05


def test_rows_of_the_same_content_have_the_same_key() -> None:
    x = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
    for rows in (x, x.tolist(), sparse.csr_matrix(x), pd.DataFrame(x), pd.DataFrame({"a": ["x", "y", "x"]}), ["p", "q", "p"]):
        keys = row_keys(rows)
        assert keys[0] == keys[2] != keys[1]


def test_rounds_of_any_splits() -> None:
    none = np.empty(0, dtype=np.intp)
    held_out = [np.array([0, 1]), np.array([2]), np.array([1, 2]), np.array([0])]
    assert [each.numbers for each in complete_rounds([(none, rows) for rows in held_out])] == [[0, 1], [2, 3]]


def test_it_is_loaded_when_first_used() -> None:
    code = "import sys, calibayes; assert 'sklearn' not in sys.modules; print(calibayes.calibrate.__module__)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "calibayes.posthoc.calibrated_classifier"
