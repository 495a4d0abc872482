"""The default: cross-fitted, chosen by out-of-fold losses, with the scaling that belongs to the ensemble."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GroupKFold, KFold
from tests.estimator.tables import iris, overlapping
from torch import nn

import calibayes as cb
from calibayes.crossfit import choose_classifier, contenders, copies_of_rows, stratified_folds, table_representation
from calibayes.errors import InvalidArgumentError, NetworkOutputError
from calibayes.methods import Examples
from calibayes.metrics import nll
from calibayes.predictive import predict

QUICK = "logistic-regression"


def cross_fitted(method: str | None = QUICK, **settings: Any) -> cb.CalibayesClassifier:
    return cb.CalibayesClassifier(method, **{"random_state": 0, **settings})


def test_the_default_chooses_by_out_of_fold_losses_and_is_calibrated() -> None:
    x, y = overlapping(300)
    found = cb.CalibayesClassifier(random_state=0, epochs=20).fit(x, y)
    tried = {each.method: each for each in found.attempts_}
    assert {"logistic-regression", "ema"} <= set(tried)
    assert found.method_ in tried
    assert tried[found.method_].result == "complete"
    assert found.out_of_fold_.shape == (300, 2)
    np.testing.assert_allclose(found.out_of_fold_.sum(1), 1)
    test_x, test_y = overlapping(2000, seed=1)
    best = nll(1 / (1 + np.exp(0.5 - test_x[:, 0])), test_y)
    assert nll(found.predict_proba(test_x), test_y) < best + 0.03


def test_it_is_what_choose_classifier_says_of_the_same_rows_and_folds() -> None:
    x, y = iris()
    found = cross_fitted().fit(x, y)
    rows = x.astype(np.float32)
    keys = copies_of_rows(rows)
    order = np.lexsort((y, keys))
    folds = stratified_folds(y[order].astype(np.int64), 5, seed=found._seed, groups=keys[order])
    examples = Examples(torch.from_numpy(rows[order]), torch.from_numpy(y[order].astype(np.int64)))
    representation = table_representation(rows[order], range(4), [], 3)
    ways, _ = contenders(representation, examples, 3, folds, seed=found._seed, method=QUICK)
    expected = choose_classifier(ways, budget=100)
    held_out = np.empty_like(expected.held_out)
    held_out[order] = expected.held_out
    np.testing.assert_array_equal(found.out_of_fold_, held_out)
    assert repr(found.scaling_) == repr(expected.scaling)
    probs = expected.scaling.transform(predict(expected.posterior.double(), torch.from_numpy(rows).double()).probs)
    np.testing.assert_allclose(found.predict_proba(x), probs.numpy(), atol=1e-12)
    assert len(found.posterior_.members) == 5


@pytest.mark.parametrize(
    "method", ["Logistic-Regression", "EMA", "CA-BNN", pytest.param("Boosted-Trees", marks=pytest.mark.boosting)]
)
def test_any_method_by_any_case(method: str) -> None:
    x, y = iris()
    settings: dict[str, Any] = {"epochs": 40, "learning_rate": 0.01} if method in ("EMA", "CA-BNN") else {}
    found = cross_fitted(method, **settings).fit(x[::2], y[::2])
    assert found.method_ == method.lower()
    assert {each.method for each in found.attempts_} == {method.lower()}
    assert len({each.title for each in found.attempts_}) == len(found.attempts_) == (3 if method == "EMA" else 1)
    assert found.score(x[1::2], y[1::2]) > 0.85
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).predict_proba(x), found.predict_proba(x))
    np.testing.assert_array_equal(clone(found).fit(x[::2], y[::2]).predict_proba(x), found.predict_proba(x))
    uncertainty = found.predict_uncertainty(x)
    np.testing.assert_allclose(uncertainty.confidence, found.predict_proba(x).max(1))
    np.testing.assert_allclose(uncertainty.aleatoric + uncertainty.epistemic, uncertainty.entropy)
    assert (uncertainty.between > 0).any()


def test_groups_stay_together_and_out_of_fold_rows_are_not_known() -> None:
    draws = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 4)
    x = draws.normal(size=(60, 3))[groups] + 0.01 * draws.normal(size=(240, 3))  # nearly copies within a group
    y = draws.integers(0, 2, 60)[groups]  # nothing to learn, but a group gives its class away
    apart = cross_fitted().fit(x, y, groups=groups)
    assert nll(apart.out_of_fold_, y) > 0.6
    by_splitter = cross_fitted(cv=GroupKFold(4)).fit(x, y, groups=groups)
    assert len(by_splitter.posterior_.members) == 4
    assert nll(by_splitter.out_of_fold_, y) > 0.6
    with pytest.raises(InvalidArgumentError, match="`cv=None` has no folds"):
        cb.CalibayesClassifier("fnn", cv=None).fit(x, y, groups=groups)


def test_folds_by_a_splitter_or_by_pairs_are_the_same() -> None:
    x, y = overlapping(60)
    splits = list(KFold(3).split(x))
    one, other = (cross_fitted(cv=cv).fit(x, y) for cv in (KFold(3), splits))
    np.testing.assert_array_equal(one.predict_proba(x), other.predict_proba(x))
    assert np.isnan(cross_fitted(cv=splits[:1]).fit(x, y).out_of_fold_).any(1).sum() == 40


@pytest.mark.parametrize("method", [QUICK, "ema", pytest.param("boosted-trees", marks=pytest.mark.boosting)])
def test_a_weight_is_a_number_of_rows_and_their_order_does_not_matter(method: str) -> None:
    x, y = overlapping(60)
    draws = np.random.default_rng(0)
    weights = draws.integers(0, 4, len(y))
    order = draws.permutation(np.repeat(np.arange(len(y)), weights))
    settings: dict[str, Any] = {"epochs": 3} if method == "ema" else {}
    weighted = cross_fitted(method, **settings).fit(x, y, weights)
    repeated = cross_fitted(method, **settings).fit(x[order], y[order])
    np.testing.assert_array_equal(weighted.predict_proba(x), repeated.predict_proba(x))
    assert np.isnan(weighted.out_of_fold_).any(1).tolist() == (weights == 0).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("method", [QUICK, "ema", pytest.param("boosted-trees", marks=pytest.mark.boosting)])
def test_weights_of_rows_and_classes_reach_every_method(method: str) -> None:
    x, y = make_classification(300, 4, n_informative=3, n_redundant=0, weights=[0.8], class_sep=0.5, random_state=0)
    settings: dict[str, Any] = {"epochs": 15, "learning_rate": 0.01} if method == "ema" else {}
    plain, balanced = (cross_fitted(method, class_weight=w, **settings).fit(x, y).predict_proba(x) for w in (None, "balanced"))
    assert abs(plain[:, 1].mean() - y.mean()) < 0.06
    assert balanced[:, 1].mean() > plain[:, 1].mean() + 0.1
    weights = np.where(y == 1, 300 / (2 * y.sum()), 300 / (2 * (300 - y.sum())))
    np.testing.assert_allclose(cross_fitted(method, **settings).fit(x, y, weights).predict_proba(x), balanced, atol=1e-4)


def test_a_class_with_a_single_row_is_trained_on_by_all_members() -> None:
    x, y = iris()
    rows = [*range(100), 100]
    found = cross_fitted().fit(x[rows], y[rows])
    assert found.classes_.tolist() == [0, 1, 2]
    assert np.isnan(found.out_of_fold_).any(1).nonzero()[0].tolist() == [100]
    with pytest.raises(InvalidArgumentError, match="each of the 2 classes has 1 sample"):
        cross_fitted().fit([[0.0], [1.0]], [0, 1])


def test_a_network_of_ones_own_is_cross_fitted_on_standardised_columns() -> None:
    x, y = iris()

    def network(features: int, classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(features, 16), nn.Tanh(), nn.Linear(16, classes))

    found = cross_fitted(None, network=network, epochs=40, learning_rate=0.01).fit(1e4 * x[::2] + 1e6, y[::2])
    assert found.method_ == "ema"
    assert found.scaler_ is not None
    assert found.score(1e4 * x[1::2] + 1e6, y[1::2]) > 0.85
    starts = [member.network().get_parameter("0.weight") for member in found.posterior_.members]
    assert not torch.allclose(starts[0], starts[1], atol=0.05)
    with pytest.raises(NetworkOutputError, match="each of the 3 classes in `y`, but it has 2"):
        cross_fitted("fnn", network=nn.Linear(4, 2)).fit(x, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lam": 1.0}, "`method` to be named beside `lam`"),
        ({"method": "ca-bnn", "lam": "auto"}, "`lam='auto'` .* Add `cv=None`"),
        ({"warm_start": True}, "add `cv=None`"),
        ({"method": "boosted-trees", "cv": None}, "needs folds: use `cv=5`"),
        ({"method": QUICK, "network": nn.Linear(3, 2)}, "trains no network"),
        ({"method": "fnn", "scheme": "bnn"}, "`scheme` is its older name"),
        ({"method": "boostd"}, "Did you mean"),
        ({"method": QUICK, "cv": "five"}, "`cv` to be a number of folds, .* but got 'five'"),
        ({"method": QUICK, "cv": 1}, "`cv` .* but got 1"),
        ({"method": QUICK, "budget": -1}, "`budget` .* but got -1"),
        ({"method": QUICK, "method_settings": {"penalty": 1}}, "no setting 'penalty'. Did you mean 'penalties'"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        cb.CalibayesClassifier(**settings).fit(*overlapping(40))


def test_the_older_name_of_the_method_still_works() -> None:
    x, y = overlapping(40)
    with pytest.warns(FutureWarning, match="`scheme` is now called `method`"):
        found = cb.CalibayesClassifier(scheme=QUICK, random_state=0).fit(x, y)
    np.testing.assert_array_equal(found.predict_proba(x), cross_fitted().fit(x, y).predict_proba(x))


def test_one_training_after_a_cross_fit_leaves_nothing_of_it_behind() -> None:
    x, y = overlapping(40)
    found = cross_fitted().fit(x, y)
    assert not hasattr(found, "history_")
    found.set_params(method="fnn", cv=None, epochs=1).fit(x, y)
    assert not hasattr(found, "attempts_")
    assert found.scaling_ is None
    assert found.method_ == "fnn"
