"""Predictions and metrics of a Trainer are those of `predict` and `evaluate`, for inputs of any structure."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import calibayes as cb

pytest.importorskip("lightning")
from tests.lightning.toy import MARKS, data, loader, module, state, trainer

pytestmark = MARKS


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
