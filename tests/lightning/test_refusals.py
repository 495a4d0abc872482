"""Settings and data that the module rejects, with named errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import calibayes as cb
from calibayes.errors import (
    DataError,
    InvalidArgumentError,
    InvalidTargetsError,
    NetworkOutputError,
    NonFiniteLossError,
    OptimizerError,
    UnsupportedNetworkError,
)

pytest.importorskip("lightning")
from lightning.pytorch.callbacks import GradientAccumulationScheduler
from lightning.pytorch.strategies import FSDPStrategy
from tests.lightning.toy import MARKS, N, data, loader, module, perceptron, trainer

from calibayes.lightning import CalibayesModule

pytestmark = MARKS


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(zip(*data(), strict=True))


def test_data_without_a_length_needs_a_dataset_size() -> None:
    with pytest.raises(DataError, match=r"an? Endless, has no length. .* `CalibayesModule\(..., dataset_size=50_000\)`"):
        trainer(1).fit(module("bnn"), DataLoader(Endless(), batch_size=20))
    trainer(1).fit(module("bnn", dataset_size=N), DataLoader(Endless(), batch_size=20))
    trainer(1).fit(module("ca-fnn"), DataLoader(Endless(), batch_size=20))  # has no KL


def test_several_dataloaders_need_a_dataset_size() -> None:
    with pytest.raises(DataError, match="there are 2 train dataloaders"):
        trainer(1).fit(module("bnn"), [loader(), loader()])


def test_a_network_that_returns_probabilities() -> None:
    net = nn.Sequential(nn.Linear(6, 3), nn.Softmax(-1)).double()
    with pytest.raises(NetworkOutputError, match="drop the final softmax"):
        trainer(1).fit(module(net=lambda: net), loader())


def test_an_objective_that_is_none() -> None:
    wrong: Any = cb.WMMCE()
    with pytest.raises(InvalidArgumentError, match="Expected `objective` to be an Objective, but got WMMCE"):
        CalibayesModule(perceptron(), wrong)


def test_terms_that_the_trainer_has_no_data_for() -> None:
    for term in (cb.ConfidenceMinimization(), cb.Calibration(on="held_out")):
        with pytest.raises(InvalidArgumentError, match=f"The term '{term.name}' is taken on .* Train with `calibayes.fit`"):
            CalibayesModule(perceptron(), cb.Objective(terms=(term,)))
    with pytest.raises(InvalidArgumentError, match="CalibayesModule itself logs 'train_loss'"):
        CalibayesModule(perceptron(), cb.Objective(terms=(cb.Calibration(name="train_loss"),)))


def test_a_subclass_of_the_objective_is_refused() -> None:
    class Mine(cb.Objective):  # type: ignore[misc]
        pass

    with pytest.raises(InvalidArgumentError, match=r"but got Mine\. What a subclass overrides would be ignored"):
        CalibayesModule(perceptron(), Mine())


def test_a_batch_whose_labels_have_another_name() -> None:
    rows: Any = [{"x": x, "label": y} for x, y in zip(*data(), strict=True)]
    with pytest.raises(DataError, match=r"but got a dict with \['x', 'label'\]"):
        trainer(1).fit(module(), DataLoader(rows, batch_size=20))


def test_a_posterior_that_is_none() -> None:
    wrong: Any = "resnet18"
    with pytest.raises(UnsupportedNetworkError, match="but got str"):
        CalibayesModule(wrong, cb.Objective())


@pytest.mark.parametrize(
    "settings",
    [
        {"samples": 0},
        {"samples": 1.5},
        {"dataset_size": -1},
        {"dataset_size": "all"},
        {"evaluation_samples": 0},
        {"prediction_samples": "median"},
        {"seed": 0.5},
        {"scheduler_interval": "batch"},
    ],
)
def test_settings_are_quoted(settings: dict[str, Any]) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(InvalidArgumentError, match=f"`{name}` .*but got {value!r}"):
        module(**settings)


def test_an_optimiser_that_decays_rho() -> None:
    def decaying(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.AdamW([each for group in parameters for each in group["params"]], weight_decay=0.1)

    with pytest.raises(OptimizerError, match=r"Weight decay 0\.1 on rho"):
        trainer(1).fit(module(optimizer=decaying), loader())


def test_labels_that_the_network_has_no_output_for() -> None:
    x, y = data()
    with pytest.raises(InvalidTargetsError, match="one is 14"):
        trainer(1).fit(module(), DataLoader(TensorDataset(x, y.clamp_min(1) * 7), batch_size=20))


def test_batches_that_are_none() -> None:
    with pytest.raises(DataError, match="Expected every batch of `train` to be"):
        trainer(1).fit(module(), DataLoader(TensorDataset(data()[0]), batch_size=20))


def test_a_loss_that_is_not_finite() -> None:
    x, y = data()
    x[25] = torch.nan
    with pytest.raises(NonFiniteLossError, match=r"The cross_entropy term became nan in epoch 1, step 2\. .*gradient_clip_val"):
        trainer(1).fit(module(), DataLoader(TensorDataset(x, y), batch_size=20))


def test_weights_in_half_precision() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'0.weight' is torch.bfloat16.*bf16-mixed.*instead of 'bf16-true'"):
        trainer(1, precision="bf16-true").fit(module(), loader())


def test_a_strategy_that_shards_the_weights() -> None:
    """As the module meets it; the strategy itself would not start without GPUs."""
    run = SimpleNamespace(world_size=2, strategy=FSDPStrategy(), accumulate_grad_batches=1, precision="32-true")
    here = module()
    here._trainer = run
    with pytest.raises(InvalidArgumentError, match=r"Expected a Trainer with `strategy='ddp'` .* but got FSDPStrategy"):
        here.on_fit_start()


def test_accumulated_batches_each_have_their_own_term() -> None:
    """The average of the two batches' gradients, as the warning says."""

    def sgd(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.5)

    def net() -> nn.Module:
        return perceptron(dropout=0.0)

    here = module("ca-fnn", net, optimizer=sgd)
    with pytest.warns(UserWarning, match="accumulate_grad_batches=2 the calibration term is that of each batch on its own"):
        trainer(1, accumulate_grad_batches=2).fit(here, loader(40))
    posterior = module("ca-fnn", net).posterior
    x, y = data(40)
    losses = [
        here.objective(posterior(a), b, torch.zeros(()), dataset_size=1).total
        for a, b in zip(x.split(20), y.split(20), strict=True)
    ]
    theta = next(posterior.parameters())
    (gradient,) = torch.autograd.grad((losses[0] + losses[1]) / 2, theta)
    found: Tensor = next(here.posterior.parameters())
    assert torch.allclose(found, theta - 0.5 * gradient, atol=1e-12)


def test_accumulation_without_a_term_says_nothing() -> None:
    trainer(1, accumulate_grad_batches=2).fit(module("bnn"), loader(40))


def test_a_callback_that_accumulates_is_warned_of_once() -> None:
    plan = GradientAccumulationScheduler({0: 1, 1: 2})
    with pytest.warns(UserWarning, match="accumulate_grad_batches=2 the calibration term") as caught:
        trainer(3, callbacks=[plan]).fit(module("ca-fnn"), loader(40))
    assert sum("calibration term" in str(each.message) for each in caught) == 1
