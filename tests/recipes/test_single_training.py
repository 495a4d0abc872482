"""One training of an experiment: what it is told, and what it tells."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from tests.recipes.points import network, points
from torch import nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import ece, nll
from calibayes.posthoc import TemperatureScaling
from calibayes.recipes.single_training import TrainingSettings, train_and_score

SHORT = TrainingSettings(epochs=4, batch_size=30, learning_rate=0.02, optimizer="adam", predictive_samples=4, epoch_samples=2)
CA_BNN = replace(SHORT, scheme="ca-bnn", lam=5.0, beta=0.1, evaluate_every=2)


@cache
def run(settings: TrainingSettings) -> dict[str, Any]:
    """A result without its times."""
    found = train_and_score(settings, points(), network)
    assert found.pop("training_seconds") > 0
    assert all(epoch.pop("seconds") > 0 for epoch in found["epochs"])
    return found


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lamda": 3}, "but got 'lamda'. Did you mean 'lam'?"),
        ({"zzz": 3}, "but got 'zzz'. They are scheme, lam"),
        ({"scheme": "cnn"}, "one of the methods .* but got 'cnn'"),
        ({"scheme": "ca-fnn"}, "`lam` > 0 for 'ca-fnn', but got 0.0"),
        ({"scheme": "fnn", "lam": 3.0}, "no `lam` for 'fnn', but got 3.0"),
        ({"scheme": "ensemble", "start_epochs": 2}, "no `start_epochs` for 'ensemble', but got 2"),
        ({"scheme": "bnn"}, "`beta` to be positive for 'bnn', but got 0.0"),
        ({"epochs": 0}, "`epochs` to be a positive integer, but got 0"),
        ({"optimizer": "adagrad"}, "`optimizer` to be one of .* but got 'adagrad'"),
        ({"measure": "ece"}, "`measure` to be one of .* but got 'ece'"),
        ({"warm_up": -1}, "`warm_up` to be .* but got -1"),
        ({"schedule": "step"}, "`schedule` to be one of .* but got 'step'"),
        ({"seed": "one"}, "`seed` to be an integer, but got 'one'"),
    ],
)
def test_bad_settings_are_quoted(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        TrainingSettings.of(settings)


def test_settings_survive_being_written_down() -> None:
    assert TrainingSettings.of(json.loads(json.dumps(CA_BNN.to_dict()))) == CA_BNN


def test_the_result_is_a_function_of_the_settings() -> None:
    first = run(CA_BNN)
    assert json.loads(json.dumps(first)) == first  # numbers, texts, lists and dicts alone
    run.cache_clear()
    assert run(CA_BNN) == first
    assert run(replace(CA_BNN, seed=1)) != first


def test_scores_are_those_of_the_trained_network_and_of_the_temperature_that_fits_validation() -> None:
    found = train_and_score(SHORT, points(), network)
    splits = points()
    torch.manual_seed(0)
    posterior = cb.Point(network())
    cb.fit(
        posterior,
        splits.train,
        cb.Objective(lam=0.0),
        optimizer=lambda groups: torch.optim.Adam(groups, lr=0.02),
        epochs=4,
        batch_size=30,
        progress=False,
    )
    validation, test = (cb.predict(posterior, part[0], dtype=torch.float64).probs for part in (splits.validation, splits.test))
    scaling = TemperatureScaling().fit(validation, splits.validation[1])
    final = found["final"]
    assert final["test"]["ece"] == pytest.approx(ece(test, splits.test[1]), rel=1e-5)
    assert final["validation"]["nll"] == pytest.approx(nll(validation, splits.validation[1]), rel=1e-5)
    assert final["temperature"] == pytest.approx(scaling.temperature, rel=1e-5)
    assert final["scaled"]["nll"] == pytest.approx(nll(scaling.transform(test), splits.test[1]), rel=1e-5)
    assert sum(final["reliability"]["test"]["count"]) == 90
    assert {name: found["epochs"][-1][name] for name in ("test", "scaled")} == {
        name: final[name] for name in ("test", "scaled")
    }
    assert found["examples"] == {"train": 90, "validation": 90, "test": 90}


def test_a_bayesian_network_is_looked_at_with_fewer_samples_and_at_its_mean() -> None:
    found = run(CA_BNN)
    assert [epoch["epoch"] for epoch in found["epochs"] if "test" in epoch] == [2, 4]
    assert set(found["final"]["by_samples"]) == {"1", "2"}
    assert found["final"]["mean_weights"]["test"] != found["final"]["test"]
    assert all(epoch["kl"] > 0 and epoch["calibration"] > 0 for epoch in found["epochs"])
    assert "by_samples" not in run(SHORT)["final"]


@pytest.mark.parametrize(
    "change",
    [
        {"scores": "hard"},
        {"measure": "mmce"},
        {"measure": "dece"},
        {"lam_scale": "mean"},
        {"normalization": "reference"},
        {"tau_c": 0.1},
        {"kernel_width": 0.1},
        {"held_out": 30},
        {"start_epochs": 2},
        {"prior_mean": "initial"},
        {"init_std": 0.05},
        {"samples": 2},
        {"optimizer": "rmsprop"},
        {"schedule": "cosine"},
        {"warm_up": 2},
    ],
    ids=str,
)
def test_every_setting_changes_what_is_trained(change: dict[str, Any]) -> None:
    assert run(replace(CA_BNN, **change))["epochs"][-1] != run(CA_BNN)["epochs"][-1]


def test_held_out_examples_are_not_trained_on() -> None:
    assert run(replace(CA_BNN, held_out=30))["examples"]["train"] == 60
    with pytest.raises(InvalidArgumentError, match="leave some of the 90 training examples, but got 90"):
        run(replace(CA_BNN, held_out=90))


def test_a_start_from_a_trained_network_is_ahead() -> None:
    """After the same number of epochs of its own."""
    losses = [run(replace(CA_BNN, start_epochs=start))["epochs"][0]["cross_entropy"] for start in (0, 8)]
    assert losses[1] < losses[0]


def test_a_sure_network_has_a_finite_nll() -> None:
    """In float32 the probability of a class may be zero where it is 1e-80."""

    class Sure(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 400 * torch.as_tensor(self.net(x))

    found = train_and_score(replace(SHORT, epochs=1), points(), Sure)
    assert 1 < found["final"]["test"]["nll"] < 1e4
