"""Members of an ensemble are trained under a Trainer as each of them is alone, and any method is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.data.sources import Batch
from calibayes.errors import InvalidArgumentError
from calibayes.posterior import Posterior
from calibayes.posterior.ensemble import member_seed

pytest.importorskip("lightning")
from lightning.pytorch.callbacks import ModelCheckpoint
from tests.lightning.toy import MARKS, N, adam, data, loader, perceptron, state, trainer, with_batch_norm

from calibayes.lightning import CalibayesModule
from calibayes.lightning.trainer_callback import planned_epochs

pytestmark = [*MARKS, pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty")]
OBJECTIVE = cb.Objective(lam=30.0, beta=0.1, calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1))


def member(kind: str, index: int, net: Callable[[], nn.Module] = with_batch_norm) -> cb.Point | cb.MeanField:
    made = net()
    with torch.no_grad():
        next(made.parameters()).add_(0.1 * index)
    return cb.Point(made) if kind == "point" else cb.MeanField(made, init_std=0.05)


def module(posterior: Posterior, **settings: Any) -> CalibayesModule:
    return CalibayesModule(posterior, OBJECTIVE, **{"optimizer": adam, "samples": 2, "seed": 3, **settings})


@pytest.mark.parametrize("clipped", [None, 0.05])
@pytest.mark.parametrize("kind", ["point", "mean-field"])
def test_each_member_has_the_bits_that_it_has_alone(kind: str, clipped: float | None) -> None:
    """With dropout, noise, running statistics and clipping of its own; what is logged are the means."""
    ensemble, run = module(cb.Ensemble([member(kind, 0), member(kind, 1)])), trainer(3, gradient_clip_val=clipped)
    run.fit(ensemble, loader())
    logged = []
    for index, found in enumerate(ensemble.posterior.members):
        alone, own = module(member(kind, index), seed=member_seed(3, index)), trainer(3, gradient_clip_val=clipped)
        own.fit(alone, loader())
        expected = alone.posterior.state_dict()
        for name, value in found.state_dict().items():
            assert torch.equal(value, expected[name]), (index, name)
        logged.append({name: float(value) for name, value in own.callback_metrics.items()})
    for name, value in run.callback_metrics.items():
        assert float(value) == pytest.approx((logged[0][name] + logged[1][name]) / 2, rel=1e-6), name
    assert set(logged[0]) == {"train_loss", "cross_entropy", "calibration", "kl"}


def test_validation_and_prediction_are_those_of_the_ensemble() -> None:
    here, run = module(cb.Ensemble([member("mean-field", 0), member("mean-field", 1)]), evaluation_samples=4), trainer(1)
    run.fit(here, loader(), loader(50, 15, 1))
    x, y = data(50, 1)
    expected = cb.evaluate(cb.predict(here.posterior, x, samples=4, seed=3).probs, y, intervals=False)
    assert float(run.callback_metrics["val_nll"]) == pytest.approx(expected.nll, rel=1e-6)


@pytest.mark.parametrize("averaging", [None, cb.EMA(0.8)])
def test_an_ensemble_is_taken_up_with_the_same_bits(averaging: Any, tmp_path: Path) -> None:
    """From checkpoints that are written after the last step of an epoch, before Lightning says that the epoch is over."""

    def run(start: int = 0) -> CalibayesModule:
        parts = [member("point", 0), cb.MeanField(with_batch_norm(), init_std=0.05, epochs_before=2)]
        here = module(cb.Ensemble(parts), averaging=averaging)
        keep = [ModelCheckpoint(tmp_path, filename="{step}", save_top_k=-1, every_n_train_steps=4)]
        begin = str(tmp_path / f"step={start}.ckpt") if start else None
        trainer(4, enable_checkpointing=True, callbacks=keep).fit(here, loader(), ckpt_path=begin)
        return here

    whole = state(run())
    for start in (4, 8, 12):
        found = state(run(start))
        assert all(torch.equal(found[name], value) for name, value in whole.items()), start


class Told(cb.posterior.Group):
    """Notes what it is told, and when."""

    def __init__(self, source: cb.posterior.Group) -> None:
        super().__init__("told", source.layout)
        self.weights = nn.Parameter(source.mean().detach().clone())
        self.calls: list[Any] = []

    def mean(self) -> Tensor:
        return self.weights

    def begin(self, epochs: int) -> None:
        self.calls.append(("begin", epochs))

    def after_step(self) -> None:
        self.calls.append("step")

    def after_epoch(self) -> None:
        self.calls.append("epoch")


def told(net: nn.Module) -> tuple[cb.Point, Told]:
    posterior = cb.Point(net)
    group = Told(posterior.groups[0])
    posterior.groups = nn.ModuleList([group])  # type: ignore[assignment]
    return posterior, group


@pytest.mark.parametrize("settings", [{}, {"accumulate_grad_batches": 2}, {"limit_train_batches": 2}])
def test_the_posterior_is_told_of_every_step_and_epoch(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As by `fit`; before validation, and at the end with the training data in their own order."""
    posterior, group = told(perceptron())
    read: list[Batch] = []

    def finish(self: Any, batches: Callable[[], Iterator[Batch]]) -> None:
        assert self.training
        group.calls.append("finish")
        read.extend(batches())

    monkeypatch.setattr(cb.posterior.NetworkPosterior, "finish", finish)
    here = CalibayesModule(posterior, cb.Objective(lam=0.0), optimizer=adam)
    shown: list[int] = []
    monkeypatch.setattr(here, "on_validation_epoch_start", lambda: shown.append(group.calls.count("epoch")))
    monkeypatch.setattr(here, "validation_step", lambda *_: None)
    monkeypatch.setattr(here, "on_validation_epoch_end", lambda: None)
    trainer(2, num_sanity_val_steps=0, **settings).fit(here, loader(shuffle=True), loader(20))
    epoch = [*["step"] * (2 if settings else 4), "epoch"]
    assert group.calls == [("begin", 2), *epoch, *epoch, "finish"]
    assert shown == [1, 2]
    x, y = data()
    assert torch.equal(torch.cat([batch.inputs for batch in read]), x)
    assert torch.equal(torch.cat([batch.targets for batch in read]), y)


@pytest.mark.parametrize(
    ("settings", "epochs"),
    [({"max_epochs": 5}, 5), ({"max_epochs": -1, "max_steps": 9}, 3), ({"max_epochs": 2, "max_steps": 9}, 2)],
)
def test_the_number_of_epochs_is_told(settings: dict[str, Any], epochs: int) -> None:
    posterior, group = told(perceptron())
    run = trainer(settings.pop("max_epochs"), **settings)
    run.fit(CalibayesModule(posterior, cb.Objective(lam=0.0)), loader())
    assert group.calls[0] == ("begin", epochs)
    assert planned_epochs(run) == epochs


def test_a_warm_start_is_a_point_for_its_epochs_and_then_a_distribution() -> None:
    """The weights are those of `fit`, and the standard deviations move from the third epoch on."""

    def posterior() -> cb.MeanField:
        return cb.MeanField(with_batch_norm(), init_std=0.05, epochs_before=0.5)

    moved = []
    for epochs in (2, 3, 4):
        here = module(posterior())
        here.posterior.begin(4)
        trainer(epochs).fit(here, loader())
        moved.append(not torch.equal(state(here)["groups.0.rho"], posterior().state_dict()["groups.0.rho"]))
    assert moved == [False, True, True]
    expected = posterior()
    cb.fit(expected, loader(), OBJECTIVE, optimizer=adam, epochs=4, samples=2, seed=3, sample_chunk=1)
    for name, value in expected.state_dict().items():
        assert torch.allclose(state(here)[name].double(), value.double(), rtol=1e-9, atol=1e-9), name


def test_swag_is_that_of_fit_with_running_statistics_at_its_mean() -> None:
    """It collects weights after epochs 2 to 4; predictions are at weights at which no step was taken."""

    def posterior() -> cb.SWAG:
        return cb.SWAG(with_batch_norm(dropout=0.0), start_epoch=2, rank=2)

    here, expected = module(posterior()), posterior()
    trainer(4).fit(here, loader(60))
    cb.fit(expected, loader(60), OBJECTIVE, optimizer=adam, epochs=4, samples=2, seed=3, sample_chunk=1)
    for name, value in expected.state_dict().items():
        if name.startswith("groups."):
            assert torch.allclose(state(here)[name].double(), value.double(), rtol=1e-9, atol=1e-9), name
    swag = here.posterior.members[0].eval()
    inputs = data(60)[0] @ swag.mean()["0.weight"].T
    assert torch.allclose(swag.buffer_values()["1.running_mean"], inputs.mean(0), rtol=1e-9, atol=1e-9)


def test_swag_is_refused_where_it_would_collect_nothing_or_be_averaged() -> None:
    with pytest.raises(InvalidArgumentError, match="start_epoch"):
        trainer(2).fit(module(cb.SWAG(perceptron(), start_epoch=3)), loader())
    with pytest.raises(InvalidArgumentError, match=r"A SWAG averages the weights itself, so `averaging=EMA\(decay=0.9"):
        trainer(4).fit(module(cb.SWAG(perceptron(), start_epoch=2), averaging=cb.EMA(0.9)), loader())


def chosen(name: str) -> dict[str, Any]:
    if name == "swag":
        return {"every": "step"}  # two epochs are too few to collect after each
    return {"members": 2} if cb.methods.method_named(name).has("members") else {}


@pytest.mark.parametrize("name", cb.NETWORK_METHODS)
def test_every_method_ends_where_fit_does(name: str) -> None:
    """Up to rounding; members of an ensemble have the batches of the first, and so the first has those of `fit`."""
    here = CalibayesModule.from_method(name, with_batch_norm, seed=3, **chosen(name))
    before = {key: value.clone() for key, value in here.posterior.members[0].state_dict().items()}
    trainer(2).fit(here, loader())
    plan = cb.build(name, with_batch_norm, **chosen(name))
    cb.fit(plan.posterior, loader(), plan.objective, epochs=2, seed=3, sample_chunk=1, **plan.fit)
    norms = ("running_mean", "running_var", "num_batches_tracked")
    averaged = plan.fit.get("averaging") is not None or plan.posterior.members[0].averages_itself
    for key, value in plan.posterior.members[0].state_dict().items():
        if averaged and key.endswith(norms):
            continue  # read in other batches
        found = here.posterior.members[0].state_dict()[key]
        assert torch.allclose(found.double(), value.double(), rtol=1e-7, atol=1e-7), key
    after = here.posterior.members[0].state_dict()
    assert any(not torch.equal(value, after[key]) for key, value in before.items())


def test_settings_of_method_and_module_are_told_apart() -> None:
    here = CalibayesModule.from_method("mixture", perceptron, members=3, samples=4, dataset_size=7, learning_rate=0.5)
    assert (len(here.posterior.members), here.samples, here.dataset_size) == (3, 4, 7)
    assert here.configure_optimizers().param_groups[0]["lr"] == 0.5
    assert CalibayesModule.from_method("ema", perceptron).averaging == cb.EMA(0.99)
    with pytest.raises(InvalidArgumentError, match=r"'ensemble' has no setting 'member'. Did you mean 'members'\?"):
        CalibayesModule.from_method("ensemble", perceptron, member=3)
    with pytest.raises(InvalidArgumentError, match=r"but got 'ensembel'. Did you mean 'ensemble'\?"):
        CalibayesModule.from_method("ensembel", perceptron)


def test_laplace_is_trained_as_a_point_and_fitted_at_the_end() -> None:
    laplace = cb.LastLayerLaplace(perceptron(), prior_precision=1.0)
    trainer(1).fit(module(laplace), loader())
    expected = cb.LastLayerLaplace.from_point(laplace, data(N), prior_precision=1.0)
    assert laplace.log_marginal_likelihood == pytest.approx(expected.log_marginal_likelihood, rel=1e-5)
