"""What is learned: calibrated, the same for the same rows, with the weights, classes and settings that were given."""

from __future__ import annotations

import random
import signal
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from tests.estimator.tables import Array, classifier, iris, overlapping
from torch import nn

import calibayes as cb
from calibayes.estimator.distinct_examples import distinct
from calibayes.metrics import nll


def probs_of(*data: Any, x: Array, **settings: Any) -> Array:
    probs: Array = classifier(**settings).fit(*data).predict_proba(x)
    return probs


def global_states() -> tuple[str, list[int], object]:
    return repr(np.random.get_state(legacy=False)), torch.get_rng_state().tolist(), random.getstate()


@pytest.mark.parametrize("scheme", cb.SCHEMES)
def test_every_scheme_learns_and_is_what_its_name_says(scheme: str) -> None:
    x, y = iris()
    found = classifier(scheme, epochs=30).fit(x[::2], y[::2])
    assert found.score(x[1::2], y[1::2]) > 0.9
    assert isinstance(found.posterior_, cb.MeanField if scheme.endswith("bnn") else cb.Point)
    assert (found.lam_ > 0, found.beta_ > 0) == (scheme.startswith("ca-"), scheme.endswith("bnn"))
    assert (found.history_.steps[0].calibration > 0, found.history_.steps[0].kl > 0) == (found.lam_ > 0, found.beta_ > 0)
    assert found.choices_ == []
    assert found.n_iter_ == len(found.history_.epochs) == 30


def test_by_default_the_nll_is_near_the_best_there_can_be() -> None:
    x, y = overlapping(400)
    test_x, test_y = overlapping(2000, seed=1)
    logit = test_x[:, 0] - 0.5  # what the two normal distributions that the classes come from say
    best = nll(1 / (1 + np.exp(-logit)), test_y)
    found = cb.CalibayesClassifier(random_state=0).fit(x, y).predict_proba(test_x)
    assert nll(found, test_y) < best + 0.03


def test_raw_columns_of_any_size_give_what_standardised_ones_give() -> None:
    x, y = overlapping()
    raw = 1e6 * x + np.array([1e8, -5.0, 1.0])
    expected = probs_of(x, y, x=x)
    np.testing.assert_allclose(probs_of(raw, y, x=raw), expected, atol=1e-3)
    found = classifier(standardize=False).fit(x, y)
    assert found.scaler_ is None
    assert not np.allclose(found.predict_proba(x), expected, atol=1e-2)
    far = classifier().fit(x, y).predict_proba(np.array([[1e300, -1e300, 3.0]]))
    assert np.isfinite(far).all()
    for size in (1e200, 1e-200):  # whose squares are no numbers
        np.testing.assert_allclose(probs_of(size * x, y, x=size * x), expected, atol=1e-3)


def test_the_order_of_rows_does_not_matter_and_a_weight_is_a_number_of_rows() -> None:
    x, y = overlapping(40)
    draws = np.random.default_rng(0)
    weights = draws.integers(0, 4, len(y))
    order = draws.permutation(np.repeat(np.arange(len(y)), weights))
    for settings in ({}, {"early_stopping": 2}, {"class_weight": "balanced"}, {"lam": "auto", "epochs": 2}):
        weighted, repeated = probs_of(x, y, weights, x=x, **settings), probs_of(x[order], y[order], x=x, **settings)
        np.testing.assert_array_equal(weighted, repeated)
    assert not np.allclose(probs_of(x, y, x=x), probs_of(x, y, weights, x=x), atol=1e-3)


def test_the_kl_term_counts_repeated_rows_and_small_weights_are_ratios() -> None:
    x, y = overlapping(40)
    whole = classifier(batch_size=1000, epochs=1).fit(x, y).history_.steps[0]
    twice = classifier(batch_size=1000, epochs=1).fit(np.repeat(x, 2, 0), np.repeat(y, 2)).history_.steps[0]
    tiny = classifier(batch_size=1000, epochs=1).fit(x, y, np.full(40, 1 / 40)).history_.steps[0]
    assert whole == tiny
    assert whole.values == twice.values
    assert whole.total - twice.total == pytest.approx(0.1 * whole.kl * (1 / 40 - 1 / 80), rel=1e-4)


def test_classes_of_every_kind_come_back_as_they_are() -> None:
    x, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for labels in (names, names.astype(object), y * 10 - 5, (y > 0), y.astype(float)):
        found = classifier().fit(x, labels)
        assert set(found.predict(x).tolist()) <= set(labels.tolist()) == set(found.classes_.tolist())
        assert found.score(x, labels) > 0.8
        np.testing.assert_array_equal(found.predict(x), found.classes_[found.predict_proba(x).argmax(1)])


def test_class_weights_move_the_decision() -> None:
    x, y = make_blobs([60, 20], centers=[[0, 0], [1.5, 0]], random_state=0)
    rare = {w: (classifier(epochs=20, class_weight=w).fit(x, y).predict(x) == 1).mean() for w in (None, "balanced")}
    assert rare["balanced"] > rare[None] + 0.05
    balanced, same = (probs_of(x, y, x=x, class_weight=w) for w in ("balanced", {0: 80 / 120, 1: 80 / 40}))
    np.testing.assert_allclose(balanced, same, atol=1e-6)


def test_the_same_random_state_gives_the_same_bits_and_global_generators_are_left_alone() -> None:
    x, y = overlapping()
    first = probs_of(x, y, x=x)
    np.random.seed(5)
    torch.manual_seed(5)
    random.seed(5)
    before = global_states()
    np.testing.assert_array_equal(probs_of(x, y, x=x), first)
    assert global_states() == before
    assert not np.array_equal(probs_of(x, y, x=x, random_state=1), first)
    state = np.random.RandomState(3)
    one, other = (probs_of(x, y, x=x, random_state=state) for _ in range(2))
    assert not np.array_equal(one, other)


def test_early_stopping_restores_the_best_epoch_and_trains_on_the_rest() -> None:
    x, y = overlapping()
    found = classifier("fnn", epochs=200, learning_rate=0.05, early_stopping=3).fit(x, y)
    history = found.history_
    scores = [row["val_nll"] for row in history.epochs]
    assert history.stopped == "early"
    assert history.best_epoch == len(scores) - 3 == scores.index(min(scores)) + 1
    assert sum(step.examples for step in history.steps) == 96 * len(scores)
    again = classifier("fnn", epochs=200, learning_rate=0.05, early_stopping=cb.EarlyStopping(3, "nll")).fit(x, y)
    assert again.history_ == history


def test_a_warm_start_goes_on_and_a_cold_one_does_not() -> None:
    x, y = iris()
    warm = classifier("fnn", epochs=3, warm_start=True).fit(x, y)
    first = warm.history_.epochs
    scaler, before = warm.scaler_, {name: value.clone() for name, value in warm.posterior_.state_dict().items()}
    warm.fit(x[:140] + 1, y[:140])
    assert warm.scaler_ is scaler
    warm.fit(x, y)
    assert warm.history_.epochs[0]["total"] < first[-1]["total"]
    assert all(not torch.equal(value, before[name]) for name, value in warm.posterior_.state_dict().items())
    cold = classifier("fnn", epochs=3).fit(x, y).fit(x, y)
    assert cold.history_.epochs == first


def test_a_network_of_ones_own() -> None:
    x, y = iris()

    def network(features: int, classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(features, 5), nn.Tanh(), nn.Linear(5, classes))

    made = classifier(network=network).fit(x, y)
    assert made.posterior_.num_bayesian == 4 * 5 + 5 + 5 * 3 + 3
    module = network(4, 3)
    weights = module[0].weight.detach().clone()  # type: ignore[index]
    given = classifier(network=module, epochs=1, learning_rate=1e-9).fit(x, y)
    assert torch.equal(module[0].weight, weights)  # type: ignore[index]
    torch.testing.assert_close(given.posterior_.members[0].mean()["0.weight"], weights)


def test_the_optimiser_gets_the_learning_rate() -> None:
    x, y = iris()
    told: list[float] = []

    def optimizer(parameters: Any, lr: float) -> torch.optim.Optimizer:
        told.append(lr)
        return torch.optim.SGD(parameters, lr=lr)

    found = classifier(optimizer=optimizer, learning_rate=0.3).fit(x, y)
    assert told == [0.3]
    assert found.history_.epochs[-1]["lr"] < 0.01


def test_uncertainty_is_that_of_the_predictions() -> None:
    x, y = overlapping()
    found = classifier(epochs=20).fit(x, y)
    probs, told = found.predict_proba(x), found.predict_uncertainty(x)
    np.testing.assert_array_equal(told.confidence, probs.max(1))
    np.testing.assert_allclose(told.entropy, -(probs * np.log(probs)).sum(1))
    np.testing.assert_allclose(told.entropy, told.aleatoric + told.epistemic, atol=1e-12)
    assert (told.epistemic > 0).all()
    assert (classifier("fnn").fit(x, y).predict_uncertainty(x).epistemic == 0).all()
    assert found.scaler_ is not None
    direct = cb.predict(found.posterior_, found.scaler_.transform(x).astype(np.float32), samples=8, seed=found._seed)
    np.testing.assert_allclose(direct.probs.numpy(), probs, atol=1e-6)


def test_a_row_that_is_there_twice_is_never_on_both_sides_of_a_split() -> None:
    x, y = overlapping(60)
    examples = distinct(np.tile(x, (3, 1)), np.tile(y, 3), np.ones(180))
    training, validation = examples.split(0.2, seed=0)
    assert len(training.y) + len(validation.y) == 60
    assert not {tuple(row) for row in training.x} & {tuple(row) for row in validation.x}
    assert validation.y.tolist().count(0) == validation.y.tolist().count(1) == 6
    few = distinct(np.arange(4.0)[:, None], np.array([0, 0, 1, 2]), np.ones(4)).split(0.2, seed=0)
    assert (sorted(few[0].y), few[1].y.tolist()) == ([0, 1, 2], [0])


def test_where_the_same_inputs_have_several_classes_both_sides_of_a_split_have_all_of_them() -> None:
    x = np.repeat(np.arange(4.0), 2)[:, None]
    y = np.tile([0, 1], 4)
    counts = np.array([80.0, 20.0, 20.0, 80.0, 50.0, 50.0, 1.0, 2.0])
    training, validation = distinct(x, y, counts).split(0.2, seed=0)
    both = {float(value) for value in training.x[:, 0]} & {float(value) for value in validation.x[:, 0]}
    assert both == {0.0, 1.0, 2.0}  # of the last, three rows might be copies
    assert training.counts.sum() + validation.counts.sum() == counts.sum()
    assert validation.counts[validation.y == 0].sum() == validation.counts[validation.y == 1].sum() == 30
    weighted = distinct(x, y, counts)._replace(weights=3 * counts).split(0.2, seed=0)
    assert all((part.weights == 3 * part.counts).all() for part in weighted)


def test_a_class_stays_in_training_and_some_rows_are_held_out_wherever_that_can_be() -> None:
    cells = [(0, 0, 2), (0, 1, 1), (1, 0, 2), (1, 1, 1), (2, 0, 1)]  # the second class is never the most frequent one
    x, y, counts = (np.array(part) for part in zip(*cells, strict=True))
    for seed in range(20):
        training, validation = distinct(x[:, None].astype(float), y, counts.astype(float)).split(0.6, seed)
        assert set(training.y.tolist()) == {0, 1}
        assert len(validation.y)
    one = distinct(np.zeros((40, 1)), np.arange(40) % 2, np.ones(40)).split(0.2, seed=0)
    assert [part.counts.tolist() for part in one] == [[16.0, 16.0], [4.0, 4.0]]
    huge = distinct(np.zeros((2, 1)), np.arange(2), np.full(2, 1e300)).split(0.25, seed=0)
    assert [part.counts.tolist() for part in huge] == [[0.75e300] * 2, [0.25e300] * 2]


@pytest.mark.parametrize("settings", [{"early_stopping": True}, {"lam": "auto"}])
def test_columns_of_few_values_are_learnt_as_well_with_a_part_held_out(settings: dict[str, Any]) -> None:
    draws = np.random.default_rng(0)
    x = draws.integers(0, 2, (600, 2)).astype(float)
    chance = np.array([0.1, 0.4, 0.6, 0.9])[(x[:, 0] + 2 * x[:, 1]).astype(int)]
    y = (draws.random(600) < chance).astype(int)
    found = classifier("ca-fnn", epochs=60, learning_rate=0.03, **settings).fit(x, y)
    assert nll(found.predict_proba(x), y) < nll(chance, y) + 0.03
    assert found.lam_ == 1.0


def test_ctrl_c_ends_the_training_and_any_search_that_it_is_a_part_of() -> None:
    x, y = overlapping(20)

    class Interrupted(torch.optim.Adam):
        def step(self, *_: Any) -> None:  # type: ignore[override]
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        classifier(optimizer=Interrupted).fit(x, y)


def test_numbers_may_be_those_of_numpy() -> None:
    x, y = overlapping(20)
    own = {
        "lam": 2.0,
        "beta": 0.5,
        "learning_rate": 0.25,
        "prior_std": 0.5,
        "validation_fraction": 0.25,
        "early_stopping": True,
    }
    theirs = {name: np.bool_(value) if value is True else np.float32(value) for name, value in own.items()} | {
        "lam": np.int64(2)
    }
    one, other = (probs_of(x, y, x=x, epochs=2, **settings) for settings in (own, theirs))
    np.testing.assert_array_equal(one, other)
