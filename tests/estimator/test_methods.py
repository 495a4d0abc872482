"""Every registered method behind scikit-learn's interface, also one of somebody else's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from tests.estimator.tables import Array, classifier, iris, overlapping
from tests.methods.own import pair
from torch import nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError, UnsupportedNetworkError
from calibayes.methods import method_named
from calibayes.predictive import predict


def few(method: str) -> dict[str, Any] | None:
    """Settings with which a method learns in a few epochs."""
    if method == "natural-gradient":
        return {"natural_rate": 1.0}
    return {"members": 2} if method_named(method).has("members") else None


@pytest.mark.parametrize("method", list(cb.NETWORK_METHODS))
def test_every_method_learns_iris_and_predicts_probabilities(method: str) -> None:
    x, y = iris()
    found = classifier(method, epochs=30, method_settings=few(method)).fit(x[::2], y[::2])
    probs = found.predict_proba(x[1::2])
    np.testing.assert_allclose(probs.sum(1), 1)
    assert (probs.argmax(1) == y[1::2]).mean() > 0.8
    told = found.predict_uncertainty(x)
    assert (told.between <= told.epistemic + 1e-9).all()
    assert (told.between > 0).any() == (len(found.posterior_.members) > 1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).predict_proba(x[1::2]), probs)
    again = clone(found).fit(x[::2], y[::2])
    np.testing.assert_array_equal(again.predict_proba(x[1::2]), probs)


@pytest.mark.parametrize("method", ["ensemble", "mixture", "mc-dropout", "natural-gradient"])
def test_weights_early_stopping_and_a_warm_start(method: str) -> None:
    x, y = overlapping(60)
    made = classifier(method, epochs=4, method_settings=few(method), early_stopping=2, warm_start=True)
    first = made.fit(x, y, np.arange(60) % 3 + 1).posterior_.state_dict()
    before = {name: value.clone() for name, value in first.items()}
    after = made.fit(x, y).posterior_.state_dict()
    assert any(not torch.equal(after[name], value) for name, value in before.items())


def test_a_warm_start_is_refused_where_it_cannot_go_on() -> None:
    x, y = overlapping(20)
    found = classifier("ensemble", epochs=1, method_settings={"members": 2}, warm_start=True).fit(x, y)
    for other in ({"method_settings": {"members": 3}}, {"method": "mixture"}, {"method": "fnn", "method_settings": None}):
        with pytest.raises(InvalidArgumentError, match="an Ensemble of 2 members cannot continue as"):
            _continued(found, other).fit(x, y)


def _continued(found: cb.CalibayesClassifier, other: dict[str, Any]) -> cb.CalibayesClassifier:
    made: cb.CalibayesClassifier = pickle.loads(pickle.dumps(found))
    made.set_params(**other)
    return made


def test_a_method_of_somebody_elses_is_there_as_soon_as_it_is_registered() -> None:
    x, y = iris()
    with pair():
        found = classifier("pair", epochs=20, method_settings={"loudness": 3}).fit(x, y)
        assert found.score(x, y) > 0.9
        assert found.lam_ == 2.0
        assert len(found.posterior_.members) == 2
    with pytest.raises(InvalidArgumentError, match="but got 'pair'"):
        classifier("pair").fit(x, y)


def test_what_was_left_out_is_as_the_method_has_it_and_what_was_given_is_passed_on() -> None:
    x, y = overlapping(20)

    def member(**settings: Any) -> cb.MeanField:
        made = classifier("mixture", epochs=1, learning_rate=1e-9, method_settings={"members": 1}, **settings).fit(x, y)
        first = made.posterior_.members[0]
        assert isinstance(first, cb.MeanField)
        return first

    assert member().prior_std == 0.3
    assert float(member().rho.detach().exp().mean()) == pytest.approx(0.01, rel=1e-4)
    assert member(prior_std=0.7).prior_std == 0.7
    assert float(member(init_std=0.05).rho.detach().exp().mean()) == pytest.approx(0.05, rel=1e-4)
    usual = classifier("mixture", epochs=1, method_settings={"members": 1}).fit(x, y)
    assert (usual.lam_, usual.beta_) == (0.0, 0.01)
    paper = classifier("ca-bnn", epochs=1).fit(x, y)
    assert isinstance(paper.posterior_, cb.MeanField)
    assert (paper.lam_, paper.beta_, paper.posterior_.prior_std) == (1.0, 0.1, 0.3)


def test_lam_is_optional_for_other_methods_and_can_be_chosen() -> None:
    x, y = overlapping(40)
    plain, term = (classifier("ema", epochs=2, **settings).fit(x, y) for settings in ({}, {"lam": 50.0}))
    assert (plain.lam_, term.lam_) == (0.0, 50.0)
    assert not np.array_equal(plain.predict_proba(x), term.predict_proba(x))
    assert len(classifier("ema", epochs=1, lam="auto").fit(x, y).choices_) == 3


def test_members_of_an_ensemble_start_from_weights_of_their_own() -> None:
    x, y = iris()

    def network(features: int, classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(features, 5), nn.Tanh(), nn.Linear(5, classes))

    def starts(net: Any, **settings: Any) -> list[Array]:
        made = classifier(
            "ensemble", network=net, epochs=1, learning_rate=1e-9, method_settings={"members": 3}, **settings
        ).fit(x, y)
        return [member.network().get_parameter("0.weight").detach().numpy() for member in made.posterior_.members]

    for net in (network, network(4, 3)):
        found = starts(net)
        assert all(np.abs(found[i] - found[j]).max() > 0.1 for i in range(3) for j in range(i))
        np.testing.assert_array_equal(found, starts(net))
        assert np.abs(found[1] - starts(net, random_state=1)[1]).max() > 0.1
    module = network(4, 3)
    np.testing.assert_allclose(starts(module)[0], module[0].weight.detach().numpy(), atol=1e-6)  # type: ignore[index]


def test_an_ensemble_is_its_members_trained_one_by_one() -> None:
    x, y = overlapping(60)
    found = classifier("ensemble", epochs=3, method_settings={"members": 3}).fit(x, y)
    assert found.scaler_ is not None
    inputs = torch.from_numpy(found.scaler_.transform(x)).float().double()
    each = [predict(copy.deepcopy(member).double(), inputs).probs.numpy() for member in found.posterior_.members]
    np.testing.assert_allclose(found.predict_proba(x), np.mean(each, 0), atol=1e-12)
    alone = classifier("fnn", epochs=3).fit(x, y)  # the first member is what FNN is
    np.testing.assert_array_equal(alone.predict_proba(x), each[0])


def test_a_network_of_ones_own_without_dropout_is_not_changed() -> None:
    with pytest.raises(UnsupportedNetworkError, match="has no dropout layer"):
        classifier("mc-dropout", network=nn.Linear(4, 3)).fit(*iris())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "ensembel"}, "but got 'ensembel'. Did you mean 'ensemble'?"),
        ({"method": "ensemble", "method_settings": {"member": 2}}, "no setting 'member'. Did you mean 'members'?"),
        ({"method": "fnn", "method_settings": {"members": 2}}, "'fnn' has no setting 'members'"),
        ({"method": "ensemble", "method_settings": {"members": 0}}, "`members` to be a positive integer, but got 0"),
        ({"method": "ensemble", "method_settings": [2]}, r"`method_settings` to be a dict .* but got \[2\]"),
        ({"method": "mixture", "method_settings": {"beta": 0.1}}, "use `beta` of CalibayesClassifier"),
        (
            {"method_settings": {"weight_decay": 0.1}, "optimizer": torch.optim.SGD},
            "`weight_decay` of the method only beside Adam",
        ),
    ],
)
def test_settings_that_a_method_does_not_have(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        classifier(**settings).fit(*overlapping(20))


def test_weight_decay_of_the_method_pulls_weights_to_zero() -> None:
    x, y = overlapping(40)
    norms = [
        float(
            classifier("fnn", epochs=20, method_settings=given).fit(x, y).posterior_.members[0].groups[0].mean().detach().norm()
        )
        for given in (None, {"weight_decay": 10.0})
    ]
    assert norms[1] < 0.5 * norms[0]
