"""The classifier inside scikit-learn's own tools, with pandas, and through a pickle."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from tests.estimator.tables import classifier, iris, overlapping
from torch import nn

import calibayes as cb


def test_in_a_grid_search_over_a_pipeline() -> None:
    x, y = iris()
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"]).assign(kind=np.where(x[:, 0] > 5.8, "long", "short"))
    columns = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    search = GridSearchCV(
        make_pipeline(columns, classifier(epochs=5)),
        {"calibayesclassifier__lam": [1.0, np.float64(10.0)], "calibayesclassifier__method": ["ca-fnn", "ca-bnn"]},
        scoring="neg_log_loss",
        cv=2,
        error_score="raise",
    ).fit(frame, y)
    assert search.best_score_ > -1.0
    assert search.best_estimator_[-1].lam_ in (1.0, 10.0)
    assert search.best_estimator_[-1].n_features_in_ == 6


@pytest.mark.slow
def test_in_cross_validation_on_several_processes() -> None:
    x, y = iris()
    one, two = (
        cross_val_predict(classifier(epochs=12, learning_rate=0.03), x, y, cv=2, method="predict_proba", n_jobs=jobs)
        for jobs in (None, 2)
    )
    np.testing.assert_allclose(one, two, atol=1e-6)
    assert (one.argmax(1) == y).mean() > 0.8
    np.testing.assert_allclose(one.sum(1), 1)


def test_inside_other_classifiers() -> None:
    x, y = iris()
    base = classifier(epochs=12, learning_rate=0.03)
    calibrated = CalibratedClassifierCV(base, cv=2).fit(x, y, sample_weight=np.linspace(0.1, 2, 150))
    assert calibrated.score(x, y) > 0.8
    votes = VotingClassifier([("a", base), ("b", LogisticRegression(max_iter=500))], voting="soft").fit(x, y)
    assert votes.score(x, y) > 0.8
    bags = BaggingClassifier(base, n_estimators=2, random_state=0).fit(x, y)
    assert bags.score(x, y) > 0.8
    assert is_classifier(base)
    assert min(cross_val_score(base, x, y, cv=2, scoring="roc_auc_ovr")) > 0.8


def test_columns_of_a_frame_are_known_by_name() -> None:
    x, y = iris()
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"])
    labels = pd.Series(np.array(["x", "y", "z"])[y], dtype="category")
    found = classifier().fit(frame, labels)
    assert found.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(found.predict_proba(frame), classifier().fit(x, y).predict_proba(x))
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        found.predict(frame[["b", "a", "c", "d"]])
    with pytest.raises(ValueError, match="now missing"):
        found.predict(frame[["a", "b", "c"]])


@pytest.mark.slow
def test_a_pickle_predicts_the_same_in_another_process(tmp_path: Path) -> None:
    x, y = overlapping()
    found = classifier(calibration=cb.MMCE()).fit(x, y)
    expected = found.predict_proba(x)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).predict_proba(x), expected)
    joblib.dump(found, tmp_path / "model.joblib")
    np.save(tmp_path / "x.npy", x)
    code = (
        "import joblib, numpy as np, torch; torch.set_num_threads(1);"
        "np.save('p.npy', joblib.load('model.joblib').predict_proba(np.load('x.npy')))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), expected, atol=1e-6)
    again = pickle.loads(pickle.dumps(found)).set_params(warm_start=True).fit(x, y)
    assert again.history_.epochs[0]["total"] < found.history_.epochs[0]["total"]


def test_a_clone_has_the_settings_and_nothing_learned() -> None:
    x, y = overlapping()
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    found = classifier(network=module, calibration=cb.DECE()).fit(x, y)
    copy = clone(found)
    assert not hasattr(copy, "posterior_")
    assert copy.network is not module
    assert copy.calibration == cb.DECE()
    np.testing.assert_array_equal(copy.fit(x, y).predict_proba(x), found.predict_proba(x))
    assert "method='fnn'" in repr(classifier("fnn"))


def test_the_name_is_there_without_loading_scikit_learn() -> None:
    code = (
        "import sys, calibayes; assert 'CalibayesClassifier' in dir(calibayes); assert 'sklearn' not in sys.modules;"
        "calibayes.CalibayesClassifier; assert 'sklearn' in sys.modules; calibayes.sweeps.read"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
