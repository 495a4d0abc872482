"""A Trainer of one process ends where `fit` does, and predicts what `predict` does."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import calibayes as cb

pytest.importorskip("lightning")
from tests.lightning.toy import (
    MARKS,
    SCHEMES,
    N,
    adam,
    data,
    loader,
    module,
    perceptron,
    posterior_and_objective,
    state,
    trainer,
    with_batch_norm,
)
from tests.objective.own_terms import Spread

from calibayes.lightning import CalibayesModule

pytestmark = MARKS


def fitted(scheme: str, net: Any = perceptron, train: Any = None, **settings: Any) -> tuple[Any, cb.History]:
    posterior, objective = posterior_and_objective(scheme, net())
    history = cb.fit(
        posterior,
        loader() if train is None else train,
        objective,
        **{"optimizer": adam, "epochs": 2, "samples": 2, "seed": 3, "sample_chunk": 1, **settings},
    )
    return posterior, history


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float = 1e-10) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.allclose(found[name].double(), value.double(), rtol=tolerance, atol=tolerance), name


@pytest.mark.parametrize("net", [perceptron, with_batch_norm])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_terms_and_metrics_are_those_of_fit(scheme: str, net: Any) -> None:
    """With dropout, with a last batch of three, and with validation between the epochs, which must not change modes."""
    posterior, history = fitted(scheme, net, validation=data(50, 1), validation_samples=4)
    here, run = module(scheme, net), trainer()
    run.fit(here, loader(), loader(50, 15, 1))
    assert_same(state(here), posterior.state_dict())
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
    assert_same(state(here), posterior.state_dict())


def test_a_network_alone_is_a_point() -> None:
    from calibayes.lightning import CalibayesModule

    here = CalibayesModule(perceptron(), cb.Objective(lam=0.0))
    assert isinstance(here.posterior, cb.Point)
    x, _ = data(5)
    assert torch.equal(here.eval()(x), here.posterior.network()(x))


def test_the_trainer_clips_gradients() -> None:
    posterior, _ = fitted("ca-bnn", clip_norm=0.01)
    here = module()
    trainer(gradient_clip_val=0.01).fit(here, loader())
    assert_same(state(here), posterior.state_dict(), 1e-7)  # Lightning and PyTorch add different small numbers to the norm
    unclipped, _ = fitted("ca-bnn")
    assert not torch.allclose(state(here)["groups.0.mu"], unclipped.mu, atol=1e-4)


@pytest.mark.parametrize("interval", ["epoch", "step"])
def test_schedulers_step_when_they_should(interval: Any) -> None:
    def scheduler(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    posterior, _ = fitted("ca-bnn", scheduler=scheduler, scheduler_interval=interval)
    here = module(scheduler=scheduler, scheduler_interval=interval)
    trainer().fit(here, loader())
    assert_same(state(here), posterior.state_dict())


def test_a_scheduler_on_a_plateau_looks_at_the_validation_nll() -> None:
    def scheduler(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=1e3)

    posterior, _ = fitted("fnn", scheduler=scheduler, epochs=4, validation=data(50, 1), validation_samples=4)
    here = module("fnn", scheduler=scheduler)
    run = trainer(4)
    run.fit(here, loader(), loader(50, 15, 1))
    assert run.optimizers[0].param_groups[0]["lr"] < 0.01
    assert_same(state(here), posterior.state_dict())


def test_lambda_may_depend_on_the_step() -> None:
    def objective() -> cb.Objective:
        return cb.Objective(lam=cb.schedules.Linear(end=50.0, steps=8), calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1))

    posterior = cb.MeanField(perceptron(), init_std=0.05)
    cb.fit(posterior, loader(), objective(), optimizer=adam, epochs=2, samples=2, seed=3, sample_chunk=1)
    here = module()
    here.objective = objective()
    trainer().fit(here, loader())
    assert_same(state(here), posterior.state_dict())


def test_double_precision_is_the_trainers_to_choose() -> None:
    here = module(net=lambda: perceptron().float())
    posterior = module(net=lambda: perceptron().float()).posterior.double()
    cb.fit(posterior, loader(), here.objective, optimizer=adam, epochs=2, samples=2, seed=3, sample_chunk=1)
    trainer(precision="64-true").fit(here, loader())
    assert_same(state(here), posterior.state_dict())


def test_mixed_precision_is_that_of_fit() -> None:
    train = [DataLoader(TensorDataset(*data(dtype=torch.float32)), batch_size=20) for _ in range(2)]
    posterior, history = fitted("ca-bnn", lambda: with_batch_norm().float(), train[0], precision="bfloat16")
    here = module(net=lambda: with_batch_norm().float())
    run = trainer(precision="bf16-mixed")
    run.fit(here, train[1])
    assert_same(state(here), posterior.state_dict(), 1e-4)
    assert float(run.callback_metrics["train_loss"]) == pytest.approx(history.steps[-1].total, rel=1e-4)
    assert {parameter.dtype for parameter in here.posterior.parameters()} == {torch.float32}


def test_a_device_without_float64_is_not_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    train = DataLoader(TensorDataset(*data(dtype=torch.float32)), batch_size=20)
    here = module("bnn", lambda: perceptron().float())

    def missing(tensor: Tensor) -> Tensor:
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")

    monkeypatch.setattr(Tensor, "double", missing)
    trainer(1).fit(here, train)


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 3), nn.Linear(2, 3)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        found: Tensor = self.first(a) + self.second(b)
        return found


class Shaped(Dataset[Any]):
    """Examples as a tuple, a nested one, or a dict."""

    def __init__(self, shape: str) -> None:
        self.shape, (self.x, self.y) = shape, data()

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> Any:
        a, b, y = self.x[index, :4], self.x[index, 4:], self.y[index]
        return {"flat": (a, b, y), "nested": ((a, b), y), "dict": {"b": b, "labels": y, "a": a}}[self.shape]


def test_inputs_of_any_structure() -> None:
    def net() -> nn.Module:
        torch.manual_seed(1)
        return TwoInputs().double()

    found = []
    for shape in ("flat", "nested", "dict"):
        here, run = module(net=net), trainer()
        run.fit(here, DataLoader(Shaped(shape), batch_size=20))
        probs = torch.cat([each["probs"] for each in run.predict(here, DataLoader(Shaped(shape), batch_size=20))])
        found.append({**state(here), "probs": probs})
    assert all(torch.equal(found[0][name], each[name]) for each in found[1:] for name in found[0])
    assert not torch.equal(found[0]["groups.0.mu"], state(module(net=net))["groups.0.mu"])


def test_predictions_are_those_of_predict_whatever_the_batches_are() -> None:
    here = module(prediction_samples=5)
    trainer().fit(here, loader())
    x, _ = data(50, 1)
    expected = cb.predict(here.posterior, x, samples=5, seed=3)
    assert bool((expected.epistemic > 0).any())
    for batch_size in (7, 50):
        found = trainer().predict(here, loader(50, batch_size, 1))
        for name in ("probs", "confidence", "decision", "entropy", "epistemic", "aleatoric"):
            joined = torch.cat([each[name] for each in found])
            assert torch.allclose(joined.double(), getattr(expected, name).double(), atol=1e-14), name


def test_metrics_are_of_all_examples_and_not_means_over_batches() -> None:
    here = module()
    trainer().fit(here, loader())
    x, y = data(50, 1)
    probs = cb.predict(here.posterior, x, samples=4, seed=3).probs
    expected = cb.evaluate(probs, y, intervals=False)
    means = [cb.metrics.ece(p, t) for p, t in zip(probs.split(7), y.split(7), strict=True)]
    (found,) = trainer().test(here, loader(50, 7, 1), verbose=False)
    for name in ("nll", "accuracy", "ece", "brier"):
        assert found[f"test_{name}"] == pytest.approx(getattr(expected, name), rel=1e-6)
    assert here.scores["test"].ece_classwise == pytest.approx(expected.ece_classwise, rel=1e-10)
    assert abs(sum(means) / len(means) - expected.ece) > 0.01


def test_the_nll_of_a_network_that_is_too_sure_is_finite() -> None:
    net = nn.Linear(6, 3)
    with torch.no_grad():
        net.weight.zero_()
        net.bias.copy_(torch.tensor([300.0, 0.0, 0.0]))
    here, run = module("fnn", lambda: net), trainer()
    x, y = data(30, dtype=torch.float32)
    run.validate(here, DataLoader(TensorDataset(x, y), batch_size=20), verbose=False)
    assert float(run.callback_metrics["val_nll"]) == pytest.approx(300.0 * float((y > 0).float().mean()), rel=1e-4)


def test_each_of_several_dataloaders_has_its_own_metrics() -> None:
    here, run = module(), trainer()
    run.validate(here, [loader(50, 15, 1), loader(30, 15, 2)], verbose=False)
    x, y = data(30, 2)
    expected = cb.metrics.nll(cb.predict(here.posterior, x, samples=4, seed=3).probs, y)
    assert float(run.callback_metrics["val_nll/dataloader_idx_1"]) == pytest.approx(expected, rel=1e-6)
    assert here.scores["val/dataloader_idx_0"].n == 50


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
        found[name] = state(here)["groups.0.rho"]
        terms = run.callback_metrics
        expected = float(terms["cross_entropy"] + 0.1 / size * terms["kl"])
        assert float(terms["train_loss"]) == pytest.approx(expected, rel=1e-5)
    assert torch.equal(found["auto"], found["told"])
    assert not torch.equal(found["auto"], found["other"])


def test_the_term_alone_in_somebodys_own_module() -> None:
    """One step is that of the loss written out."""
    from tests.lightning.own import OwnModule

    here = OwnModule(lam=30.0)
    net = perceptron(dropout=0.0)
    optimizer = adam(net.parameters())
    trainer(1).fit(here, loader(20))
    x, y = data(20)
    logits = net(x)
    aece = cb.calibration.wmmce(logits.softmax(-1), y, tau_r=0.1, tau_c=0.1)
    (nn.functional.cross_entropy(logits, y, label_smoothing=0.1) + 30.0 / 20 * aece).backward()
    optimizer.step()
    for found, expected in zip(here.net.parameters(), net.parameters(), strict=True):
        assert torch.allclose(found, expected, atol=1e-12)


TERMS = (Spread(), cb.Calibration(cb.WMMCE(tau_r=0.1, tau_c=0.1), lam=20.0, of="predictive"))


def test_any_loss_and_terms_are_those_of_fit() -> None:
    objective = cb.Objective(beta=0.1, loss=cb.Focal(), terms=TERMS)
    posterior = cb.MeanField(perceptron(), init_std=0.05)
    history = cb.fit(posterior, loader(), objective, optimizer=adam, epochs=2, samples=2, seed=3, sample_chunk=1)
    here = CalibayesModule(cb.MeanField(perceptron(), init_std=0.05), objective, optimizer=adam, samples=2, seed=3)
    run = trainer()
    run.fit(here, loader())
    assert_same(state(here), posterior.state_dict())
    for name, value in history.steps[-1].values.items():
        assert float(run.callback_metrics[name]) == pytest.approx(value, rel=1e-6)


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
