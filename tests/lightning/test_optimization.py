"""Clipping, schedulers, precision and optimisers of a Trainer give the weights of `fit`."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

import calibayes as cb

pytest.importorskip("lightning")
from tests.lightning.toy import MARKS, N, adam, assert_same, data, fitted, loader, module, perceptron, trainer, with_batch_norm

from calibayes.lightning import CalibayesModule

pytestmark = MARKS


def test_the_trainer_clips_gradients() -> None:
    posterior, _ = fitted("ca-bnn", clip_norm=0.01)
    here = module()
    trainer(gradient_clip_val=0.01).fit(here, loader())
    assert_same(here, posterior, 1e-7)  # Lightning and PyTorch add different small numbers to the norm
    unclipped, _ = fitted("ca-bnn")
    assert not torch.allclose(here.posterior.state_dict()["groups.0.mu"], unclipped.mu, atol=1e-4)


@pytest.mark.parametrize("interval", ["epoch", "step"])
def test_schedulers_step_when_they_should(interval: Any) -> None:
    def scheduler(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    posterior, _ = fitted("ca-bnn", scheduler=scheduler, scheduler_interval=interval)
    here = module(scheduler=scheduler, scheduler_interval=interval)
    trainer().fit(here, loader())
    assert_same(here, posterior)


def test_a_scheduler_on_a_plateau_looks_at_the_validation_nll() -> None:
    def scheduler(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=1e3)

    posterior, _ = fitted("fnn", scheduler=scheduler, epochs=4, validation=data(50, 1), validation_samples=4)
    here = module("fnn", scheduler=scheduler)
    run = trainer(4)
    run.fit(here, loader(), loader(50, 15, 1))
    assert run.optimizers[0].param_groups[0]["lr"] < 0.01
    assert_same(here, posterior)


def test_lambda_may_depend_on_the_step() -> None:
    def objective() -> cb.Objective:
        return cb.Objective(lam=cb.schedules.Linear(end=50.0, steps=8), calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1))

    posterior, _ = fitted(objective=objective())
    here = module(objective=objective())
    trainer().fit(here, loader())
    assert_same(here, posterior)


def test_double_precision_is_the_trainers_to_choose() -> None:
    here = module(net=lambda: perceptron().float())
    posterior = module(net=lambda: perceptron().float()).posterior.double()
    cb.fit(posterior, loader(), here.objective, optimizer=adam, epochs=2, samples=2, seed=3, sample_chunk=1)
    trainer(precision="64-true").fit(here, loader())
    assert_same(here, posterior)


def test_mixed_precision_is_that_of_fit() -> None:
    train = [DataLoader(TensorDataset(*data(dtype=torch.float32)), batch_size=20) for _ in range(2)]
    posterior, history = fitted("ca-bnn", lambda: with_batch_norm().float(), train[0], precision="bfloat16")
    here = module(net=lambda: with_batch_norm().float())
    run = trainer(precision="bf16-mixed")
    run.fit(here, train[1])
    assert_same(here, posterior, 1e-4)
    assert float(run.callback_metrics["train_loss"]) == pytest.approx(history.steps[-1].total, rel=1e-4)
    assert {parameter.dtype for parameter in here.posterior.parameters()} == {torch.float32}


def test_a_device_without_float64_is_not_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    train = DataLoader(TensorDataset(*data(dtype=torch.float32)), batch_size=20)
    here = module("bnn", lambda: perceptron().float())

    def missing(tensor: Tensor) -> Tensor:
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")

    monkeypatch.setattr(Tensor, "double", missing)
    trainer(1).fit(here, train)


def test_weight_decay_leaves_rho_alone() -> None:
    here = module(optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1))
    decays = {group["name"]: group["weight_decay"] for group in here.configure_optimizers().param_groups}
    assert decays == {"*.mu": 0.1, "*.rho": 0.0}


def test_the_kl_is_divided_by_the_number_of_examples() -> None:
    """Taken from the dataloader, or as told."""
    found = {}
    for name, size in (("auto", N), ("told", N), ("other", 10 * N)):
        here, run = module("bnn", dataset_size="auto" if name == "auto" else size), trainer(1)
        run.fit(here, loader())
        found[name] = here.posterior.state_dict()["groups.0.rho"]
        terms = run.callback_metrics
        expected = float(terms["cross_entropy"] + 0.1 / size * terms["kl"])
        assert float(terms["train_loss"]) == pytest.approx(expected, rel=1e-5)
    assert torch.equal(found["auto"], found["told"])
    assert not torch.equal(found["auto"], found["other"])


class HandlesKL(torch.optim.SGD):
    handles_kl = True


def test_an_optimiser_that_handles_the_kl_gets_the_gradient_of_the_data_alone() -> None:
    found = []
    for kind, beta in ((HandlesKL, 0.5), (torch.optim.SGD, 0.0), (torch.optim.SGD, 0.5)):
        posterior = cb.MeanField(perceptron(), init_std=0.05)
        objective = cb.Objective(beta=beta)
        here = CalibayesModule(posterior, objective, optimizer=partial(kind, lr=0.1))
        run = trainer(1)
        run.fit(here, loader())
        found.append((posterior.rho.detach(), float(run.callback_metrics["kl"])))
    assert torch.equal(found[0][0], found[1][0])
    assert not torch.equal(found[0][0], found[2][0])
    assert found[0][1] > 0
