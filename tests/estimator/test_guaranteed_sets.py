"""Sets and thresholds of the classifier: they hold with rows set aside, and say what they guarantee without."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold, RepeatedKFold

import calibayes as cb
from calibayes.acting import ActingWarning, PredictionSets, Threshold
from calibayes.errors import InvalidArgumentError

Floats = npt.NDArray[np.float64]


def drawn(n: int, seed: int = 0) -> tuple[Floats, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return np.column_stack([rng.normal(1.2 * y), rng.normal(y % 2)]), np.array(["cat", "cow", "dog"])[y]


def fitted(n: int = 400, seed: int = 0, **others: Any) -> cb.CalibayesClassifier:
    settings = {"method": "logistic-regression", "cv": 3, "random_state": 0, "set_aside": 0.4, **others}
    return cb.CalibayesClassifier(**settings).fit(*drawn(n, seed))


@pytest.fixture(scope="module")
def classifier() -> cb.CalibayesClassifier:
    return fitted()


def held(sets: npt.NDArray[np.bool_], y: Any, classes: Any) -> float:
    return float(sets[np.arange(len(y)), np.searchsorted(classes, y)].mean())


def test_rows_set_aside_have_no_part_in_training(classifier: cb.CalibayesClassifier) -> None:
    x, y = drawn(400)
    kept = classifier.set_aside_
    assert kept is not None
    assert len(kept.rows) == pytest.approx(160, abs=3)
    assert np.isnan(classifier.out_of_fold_[kept.rows]).all()
    rest = np.setdiff1d(np.arange(400), kept.rows)
    assert np.isfinite(classifier.out_of_fold_[rest]).all()
    assert classifier.classes_[kept.labels].tolist() == y[kept.rows].tolist()
    assert kept.probs == pytest.approx(classifier.predict_proba(x[kept.rows]))
    again = clone(classifier).set_params(set_aside=None).fit(x[rest], y[rest])
    assert np.array_equal(again.predict_proba(x), classifier.predict_proba(x))


def test_sets_and_thresholds_are_those_of_the_rows_set_aside(classifier: cb.CalibayesClassifier) -> None:
    x, _ = drawn(300, seed=1)
    kept = classifier.set_aside_
    assert kept is not None
    for coverage, score, by_class in ((0.9, "lac", False), (0.8, "aps", True)):
        expected = PredictionSets.fit(kept.probs, kept.labels, coverage, score, by_class)  # type: ignore[arg-type]
        found = classifier.predict_set(x, coverage, score, by_class)  # type: ignore[arg-type]
        assert found.dtype == bool
        assert found.any(1).all()
        assert (found == expected.predict(classifier.predict_proba(x)).numpy()).mean() > 0.999
    assert classifier.decision_threshold(0.8, 0.85) == Threshold.fit(kept.probs, kept.labels, 0.8, 0.85)
    assert classifier.decision_threshold(accuracy=0.8).certified


def test_the_coverage_holds_on_average() -> None:
    x, y = drawn(3000, seed=99)
    found = []
    for seed in range(12):
        one = fitted(200, seed, random_state=seed)
        found.append(held(one.predict_set(x, 0.9), y, one.classes_))
    # 80 rows are set aside; the mean coverage of rank 73 of 81 is 0.901, with a standard error of 0.01.
    assert np.mean(found) == pytest.approx(0.901, abs=0.035)


def test_without_rows_set_aside_sets_are_cross_conformal_and_a_warning_says_so() -> None:
    one = fitted(set_aside=None)
    assert one.set_aside_ is None
    x, y = drawn(3000, seed=5)
    with pytest.warns(ActingWarning, match=r"at least 0.8 of new examples \(1 - 2α\).*set_aside=0.2"):
        found = one.predict_set(x, 0.9)
    assert held(found, y, one.classes_) == pytest.approx(0.9, abs=0.05)
    assert found.any(1).all()
    with pytest.raises(InvalidArgumentError, match=r"sets of each class need. Fit with `CalibayesClassifier\(set_aside=0.2\)`"):
        one.predict_set(x, by_class=True)
    with pytest.raises(InvalidArgumentError, match=r"Expected `coverage` to lie between 0 and 1, both excluded, but got 1"):
        one.predict_set(x, 1)
    with pytest.raises(InvalidArgumentError, match=r"no threshold can be certified.*set_aside=0.2"):
        one.decision_threshold()


@pytest.mark.parametrize("others", [{"method": "ensemble", "method_settings": {"members": 2}, "epochs": 1}, {"epochs": 1}])
def test_members_of_folds_are_those_that_have_not_seen_them(others: dict[str, Any]) -> None:
    """Its members, predicting the rows of their own fold again, give the out-of-fold predictions."""
    from calibayes.estimator.guaranteed_sets import _probs_of_fold

    x, _ = drawn(120)
    one = fitted(120, set_aside=None, **{"method": None, "cv": KFold(3), **others})
    kept = one._out_of_fold
    assert kept is not None
    order = np.concatenate([held_out for _, held_out in KFold(3).split(x)])
    for place, parts in enumerate(kept.members):
        found = _probs_of_fold(one, parts, x).numpy()
        own = kept.probs[kept.folds == place]
        # Rows are trained in an order of their own: compare them as a set.
        expected = found[order[place * 40 : (place + 1) * 40]]
        assert np.sort(own[:, 0]) == pytest.approx(np.sort(expected[:, 0]), abs=2e-6)


def test_where_no_sets_are_possible_the_error_says_what_to_do() -> None:
    x, _ = drawn(60)
    for others in ({"cv": None, "method": "fnn", "epochs": 1}, {"cv": RepeatedKFold(n_splits=2, n_repeats=2)}):
        with pytest.raises(
            InvalidArgumentError, match=r"prediction sets need. Fit with `CalibayesClassifier\(set_aside=0.2\)`"
        ):
            fitted(60, **{"set_aside": None, **others}).predict_set(x)


def test_one_training_sets_rows_aside_too() -> None:
    one = fitted(200, cv=None, method="fnn", epochs=3)
    x, y = drawn(2000, seed=3)
    assert held(one.predict_set(x, 0.9), y, one.classes_) > 0.8


def test_groups_and_copies_are_never_on_both_sides() -> None:
    x, y = drawn(240)
    groups = np.arange(240) // 6
    settings: dict[str, Any] = {"method": "logistic-regression", "cv": 3, "random_state": 0, "set_aside": 0.3}
    one = cb.CalibayesClassifier(**settings).fit(x, y, groups=groups)
    assert one.set_aside_ is not None
    assert not set(groups[one.set_aside_.rows]) & set(np.delete(groups, one.set_aside_.rows))
    copies = cb.CalibayesClassifier(**settings).fit(np.repeat(x, 2, 0), np.repeat(y, 2))
    assert copies.set_aside_ is not None
    pairs = np.arange(480) // 2
    assert not set(pairs[copies.set_aside_.rows]) & set(np.delete(pairs, copies.set_aside_.rows))


def test_frames_and_sparse_matrices_are_set_aside_as_they_are() -> None:
    x, y = drawn(150)
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(colour=np.where(x[:, 0] > 1, "red", "blue"))
    settings: dict[str, Any] = {"method": "logistic-regression", "cv": 3, "random_state": 0, "set_aside": 0.3}
    one = cb.CalibayesClassifier(**settings).fit(frame, pd.Series(y))
    assert one.predict_set(frame).shape == (150, 3)
    assert one.feature_names_in_.tolist() == ["a", "b", "colour"]
    noise = sparse.random(150, 1200, density=0.02, random_state=0, format="csr")
    wide = sparse.hstack([sparse.csr_matrix(x), noise], format="csr")
    one = cb.CalibayesClassifier(**{**settings, "set_aside": None}).fit(wide, y)
    with pytest.warns(ActingWarning, match="cross-conformal"):
        assert one.predict_set(wide[:20]).shape == (20, 3)
    one = cb.CalibayesClassifier(**settings).fit(wide, y)
    assert one.predict_set(wide[:20]).shape == (20, 3)


def test_parameters_copies_and_files(classifier: cb.CalibayesClassifier) -> None:
    assert classifier.get_params()["set_aside"] == 0.4
    assert clone(classifier).set_aside == 0.4
    x, _ = drawn(20, seed=4)
    again = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(again.predict_set(x), classifier.predict_set(x))
    assert again.decision_threshold(0.8) == classifier.decision_threshold(0.8)


def test_a_further_fit_forgets_the_rows_set_aside() -> None:
    one = fitted(90)
    assert one.set_aside_ is not None
    assert one.set_params(set_aside=None).fit(*drawn(90)).set_aside_ is None


def test_what_cannot_be_set_aside_is_named() -> None:
    x, y = drawn(60)
    pairs = list(KFold(3).split(x))
    for others, message in (
        ({"set_aside": 0.7}, "share of the rows from 0.05 to 0.5"),
        ({"cv": pairs}, "a number of folds or a splitter with `set_aside`"),
        ({"cv": None, "method": "fnn", "warm_start": True}, "With `warm_start`"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            fitted(60, **others)
    settings: dict[str, Any] = {"method": "logistic-regression", "cv": 3, "set_aside": 0.3}
    with pytest.raises(InvalidArgumentError, match="`sample_weight` differs"):
        cb.CalibayesClassifier(**settings).fit(x, y, sample_weight=np.arange(60) + 1.0)
    assert cb.CalibayesClassifier(**settings).fit(x, y, sample_weight=np.full(60, 2.0)).set_aside_ is not None
    with pytest.raises(Exception, match="not fitted"):
        cb.CalibayesClassifier().predict_set(x)
