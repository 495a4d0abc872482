"""A Trainer of one process ends where `fit` does."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import calibayes as cb

pytest.importorskip("lightning")
from tests.lightning.toy import MARKS, SCHEMES, assert_same, data, fitted, loader, module, perceptron, trainer, with_batch_norm
from tests.objective.own_terms import Spread

from calibayes.lightning import CalibayesModule

pytestmark = MARKS


@pytest.mark.parametrize("net", [perceptron, with_batch_norm])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_terms_and_metrics_are_those_of_fit(scheme: str, net: Any) -> None:
    """With dropout, with a last batch of three, and with validation between the epochs, which must not change modes."""
    posterior, history = fitted(scheme, net, validation=data(50, 1), validation_samples=4)
    here, run = module(scheme, net), trainer()
    run.fit(here, loader(), loader(50, 15, 1))
    assert_same(here, posterior)
    logged, expected = run.callback_metrics, history.epochs[-1]
    for name in ("val_nll", "val_accuracy", "val_ece", "val_brier"):
        assert float(logged[name]) == pytest.approx(expected[name], rel=1e-6)
        assert getattr(here.scores["val"], name[4:]) == pytest.approx(expected[name], rel=1e-10)
    last = history.steps[-1]
    assert float(logged["train_loss"]) == pytest.approx(last.total, rel=1e-6)
    for name in ("cross_entropy", "calibration", "kl"):
        assert float(logged[name]) == pytest.approx(getattr(last, name), rel=1e-6)
    assert run.global_step == len(history.steps) == 8


def test_running_statistics_advance_once_a_step() -> None:
    here = module("bnn", with_batch_norm, samples=3)
    trainer().fit(here, loader())
    assert int(here.posterior.buffer_values()["1.num_batches_tracked"]) == 8


def test_a_part_that_was_given_in_evaluation_mode_stays_in_it() -> None:
    net = with_batch_norm()
    net[1].eval()  # type: ignore[index]
    here = module("bnn", lambda: net)
    before = here.posterior.buffer_values()["1.running_mean"].clone()
    trainer().fit(here, loader(), loader(50, 15, 1))
    assert torch.equal(here.posterior.buffer_values()["1.running_mean"], before)


def test_a_network_given_in_evaluation_mode_is_trained_all_the_same() -> None:
    posterior, _ = fitted("ca-bnn", lambda: with_batch_norm().eval())
    here = module("ca-bnn", lambda: with_batch_norm().eval())
    trainer().fit(here, loader())
    assert_same(here, posterior)


def test_a_network_alone_is_a_point() -> None:
    here = CalibayesModule(perceptron(), cb.Objective(lam=0.0))
    assert isinstance(here.posterior, cb.Point)
    x, _ = data(5)
    assert torch.equal(here.eval()(x), here.posterior.network()(x))


TERMS = (Spread(), cb.Calibration(cb.WMMCE(tau_r=0.1, tau_c=0.1), lam=20.0, of="predictive"))


def test_any_loss_and_terms_are_those_of_fit() -> None:
    objective = cb.Objective(beta=0.1, loss=cb.Focal(), terms=TERMS)
    posterior, history = fitted(objective=objective)
    here, run = module(objective=objective), trainer()
    run.fit(here, loader())
    assert_same(here, posterior)
    for name, value in history.steps[-1].values.items():
        assert float(run.callback_metrics[name]) == pytest.approx(value, rel=1e-6)
