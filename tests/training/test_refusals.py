"""Arguments and data that `fit` rejects, and its messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.training.toy import data, net, trained
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset, TensorDataset

import calibayes as cb
from calibayes.errors import (
    DataError,
    DataOverlapError,
    InvalidArgumentError,
    InvalidTargetsError,
    NonFiniteLossError,
    OptimizerError,
    UnsupportedNetworkError,
)


def test_a_loss_that_is_not_finite_stops_with_step_and_term_and_keeps_the_weights() -> None:
    x, y = data(64)
    x[40, 2] = torch.nan
    posterior = cb.Point(net())
    with pytest.raises(NonFiniteLossError, match=r"cross_entropy term became nan in epoch 1, step \d") as caught:
        cb.fit(posterior, (x, y), cb.Objective(lam=0.0), batch_size=16)
    assert caught.value.term == "cross_entropy"
    assert caught.value.epoch == 1
    assert 1 <= caught.value.step <= 4
    assert all(bool(p.isfinite().all()) for p in posterior.parameters())


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_weights_in_half_precision_are_not_trained(kind: torch.dtype) -> None:
    x, y = data(32)
    for posterior in (cb.Point(net().to(kind)), cb.MeanField(net().to(kind))):
        with pytest.raises(InvalidArgumentError, match=rf"is {kind}: steps .* rounded away.*`posterior.float\(\)`"):
            cb.fit(posterior, (x.to(kind), y), cb.Objective())
        cb.fit(posterior.float(), (x, y), cb.Objective(), epochs=1)


def test_frozen_weights_may_be_of_half_precision() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.frozen, self.head = nn.Linear(x.shape[1], 4).bfloat16().requires_grad_(False), nn.Linear(4, 3)

        def forward(self, inputs: Tensor) -> Tensor:
            found: Tensor = self.head(self.frozen(inputs.bfloat16()).float())
            return found

    x, y = data(32)
    cb.fit(cb.MeanField(Mixed()), (x, y), cb.Objective(), epochs=1)


def test_the_calibration_data_must_be_apart_from_the_validation_data() -> None:
    x, y = data()
    whole = TensorDataset(x, y)
    for calibration, validation in [
        ((x, y), (x, y)),
        ((x[:50], y[:50]), (x[40:], y[40:])),
        ((x[:50].numpy(), y[:50].numpy()), (x[40:], y[40:])),
        (whole, DataLoader(whole)),
        (Subset(whole, [0, 1, 2]), Subset(whole, [2, 3])),
        (Subset(whole, [0, 1]), (whole)),
    ]:
        with pytest.raises(DataOverlapError, match="`calibration_data` and `validation` share examples"):
            trained((x, y), calibration_data=calibration, validation=validation)
    trained((x, y), calibration_data=(x[::2], y[::2]), validation=(x[1::2], y[1::2]), epochs=1)
    trained((x, y), calibration_data=(x[:50], y[:50]), validation=(x[50:], y[50:]), epochs=1)
    trained((x, y), calibration_data=Subset(whole, [0, 1, 2]), validation=Subset(whole, [3, 4]), epochs=1)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"epochs": 0}, InvalidArgumentError, "`epochs` to be a positive integer, but got 0"),
        ({"batch_size": 2.5}, InvalidArgumentError, "`batch_size` to be a positive integer, but got 2.5"),
        ({"samples": True}, InvalidArgumentError, "`samples`"),
        ({"sample_chunk": "all"}, InvalidArgumentError, "`sample_chunk`.*'all'"),
        ({"clip_norm": -1.0}, InvalidArgumentError, "`clip_norm` to be a positive finite number, but got -1.0"),
        ({"seed": 0.5}, InvalidArgumentError, "`seed` to be an integer, but got 0.5"),
        ({"device": "gpu"}, InvalidArgumentError, "`device` .* 'gpu'"),
        ({"early_stopping": 2.5, "validation": data(9)}, InvalidArgumentError, "`patience` .* 2.5"),
        ({"precision": "fp8"}, InvalidArgumentError, "'fp8'"),
        ({"scheduler_interval": "day"}, InvalidArgumentError, "'day'"),
        (
            {"scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau, "scheduler_interval": "step"},
            InvalidArgumentError,
            "ReduceLROnPlateau",
        ),
        ({"early_stopping": 3}, InvalidArgumentError, "needs `validation`"),
        ({"early_stopping": True, "validation": data(9)}, InvalidArgumentError, "`early_stopping` .* but got True"),
        ({"early_stopping": 0}, InvalidArgumentError, "`early_stopping` .* but got 0"),
        ({"early_stopping": "x", "validation": data(9)}, InvalidArgumentError, "`early_stopping` .* but got 'x'"),
        ({"scheduler": "cosine"}, InvalidArgumentError, "`scheduler` to be a factory .* but got 'cosine'. Example: `lambda"),
        (
            {"scheduler": torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.zeros(1)]), 1)},
            InvalidArgumentError,
            "`scheduler` to be a factory .* but got <torch.optim.lr_scheduler.StepLR",
        ),
        ({"scheduler": lambda o: 0.1}, InvalidArgumentError, "`scheduler` .* but it returned 0.1"),
        ({"scheduler": lambda o: None}, InvalidArgumentError, "`scheduler` .* but it returned None"),
        ({"scheduler": torch.optim.lr_scheduler.StepLR}, InvalidArgumentError, "cannot be called .* 'step_size'.* Example"),
        (
            {"scheduler": lambda o: torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.zeros(1)]), 1)},
            InvalidArgumentError,
            "a StepLR of another optimiser",
        ),
        ({"on_epoch": 5}, InvalidArgumentError, "`on_epoch` .* but got 5"),
        ({"on_epoch": lambda *_: 5}, InvalidArgumentError, "`on_epoch` .* after epoch 1 it returned 5"),
        ({"on_epoch": lambda *_: {"loss": "low"}}, InvalidArgumentError, "`on_epoch` .* it returned 'low' for 'loss'"),
        ({"on_epoch": lambda *_: {"loss": torch.ones(2)}}, InvalidArgumentError, r"tensor\(\[1., 1.\]\) for 'loss'"),
        ({"on_epoch": lambda *_: {1: 0.5}}, InvalidArgumentError, "`on_epoch` .* it returned 1 as a name"),
        ({"checkpoint": ""}, InvalidArgumentError, "`checkpoint` .* but got ''"),
        ({"checkpoint": 5}, InvalidArgumentError, "`checkpoint` .* but got 5"),
        ({"checkpoint_seconds": -1}, InvalidArgumentError, "`checkpoint_seconds` .* but got -1"),
        ({"validation": data()[0]}, DataError, "`validation` to be a pair .* but got a Tensor"),
        ({"optimizer": torch.optim.SGD([torch.zeros(1)])}, OptimizerError, "to be a factory .* but got SGD"),
        ({"optimizer": lambda p: "adam"}, OptimizerError, "returned str"),
        ({"optimizer": "adam"}, OptimizerError, "to be a factory .* but got 'adam'. Example: `lambda parameters:"),
        ({"optimizer": lambda p: torch.optim.Adam(p[:1])}, OptimizerError, "leaves out 'groups.0.rho'"),
        ({"optimizer": lambda p: torch.optim.SGD(nn.Linear(2, 2).parameters())}, OptimizerError, "not the posterior's"),
        (
            {"optimizer": lambda p: torch.optim.AdamW([{**g, "weight_decay": 0.1} for g in p])},
            OptimizerError,
            "Weight decay 0.1 on rho",
        ),
        ({"optimizer": lambda p: torch.optim.LBFGS([q for g in p for q in g["params"]])}, OptimizerError, "LBFGS|flat vectors"),
        ({"optimizer": torch.optim.Muon}, OptimizerError, "cannot be made for flat vectors"),
        ({"train": (data()[0].double(), data()[1])}, DataError, "inputs are torch.float64 but the weights are torch.float32"),
        ({"train": "data.csv"}, DataError, "but got a str"),
        ({"train": (torch.zeros(4, 5), torch.zeros(4))}, DataError, "integer type, but are torch.float32"),
        ({"train": (torch.zeros(4, 5), torch.zeros(3, dtype=torch.long))}, DataError, r"shape \[3\]"),
        ({"train": (np.zeros((4, 5), dtype=object), np.zeros(4, dtype=int))}, DataError, "dtype object"),
        ({"train": (np.zeros((4, 5)), np.array(list("abca")))}, DataError, "dtype <U1.*numpy.unique"),
        ({"train": DataLoader(TensorDataset(*data(9)), batch_size=10, drop_last=True)}, DataError, "no batch"),
        ({"train": (torch.zeros(0, 5), torch.zeros(0, dtype=torch.long))}, DataError, "no examples"),
        ({"train": (torch.zeros(4, 5), torch.tensor([0, 1, 2, 3]))}, InvalidTargetsError, "0 … 2 .* but one is 3"),
        ({"train": (torch.zeros(4, 5), torch.tensor([0, 1, 2, -100]))}, InvalidTargetsError, "but one is -100"),
    ],
)
def test_bad_input_gets_a_named_error(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    train = settings.pop("train", data())
    with pytest.raises(error, match=message):
        trained(train, **settings)


def test_validation_examples_without_labels_are_refused_before_training() -> None:
    for validation in (TensorDataset(data()[0]), DataLoader(TensorDataset(data()[0]), batch_size=4)):
        posterior = cb.Point(net())
        before = posterior.state_dict()["groups.0.theta"].clone()
        with pytest.raises(DataError, match=r"every batch of `validation` to be \(inputs, targets\)"):
            cb.fit(posterior, data(), cb.Objective(), validation=validation)
        assert torch.equal(before, posterior.state_dict()["groups.0.theta"])


def test_settings_of_torchrun_that_were_left_behind_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    data = torch.randn(8, 4), torch.arange(8) % 3
    with pytest.raises(InvalidArgumentError, match=r"WORLD_SIZE is 2 and RANK is 0, but MASTER_ADDR is not set.*group=None"):
        cb.fit(cb.Point(nn.Linear(4, 3)), data, cb.Objective(), epochs=1, batch_size=8)
    cb.fit(cb.Point(nn.Linear(4, 3)), data, cb.Objective(), epochs=1, batch_size=8, group=None)


def test_batch_norm_on_a_single_example_says_what_to_do() -> None:
    network = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    loader = DataLoader(TensorDataset(*data(9)), batch_size=8)
    for train, size in ((data(9), 1), (loader, 8)):
        with pytest.raises(DataError, match="Batch norm met a batch of one example"):
            cb.fit(cb.Point(network), train, cb.Objective(), batch_size=size)
    cb.fit(cb.Point(network), data(9), cb.Objective(), batch_size=8, epochs=1)  # in batches of 5 and 4


class InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layer(x.sub_(1.0))
        return logits


def test_a_network_that_changes_its_input_is_refused() -> None:
    x, y = data()
    with pytest.raises(UnsupportedNetworkError, match="changes its input in place"):
        cb.fit(cb.Point(InPlace()), (x, y), cb.Objective())
    with pytest.raises(UnsupportedNetworkError, match="changes its input in place"):
        cb.predict(cb.MeanField(InPlace()), x)


class NaNGradient(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layer(x) + (self.layer.weight.sum() * 0).abs().sqrt()
        return logits


def test_weights_that_are_not_finite_are_neither_returned_nor_checkpointed(tmp_path: Path) -> None:
    posterior = cb.Point(NaNGradient())
    with pytest.raises(NonFiniteLossError, match=r"'groups.0.theta' is not finite after step 1") as caught:
        cb.fit(posterior, data(), cb.Objective(lam=0.0), epochs=1, batch_size=90, checkpoint=tmp_path)
    assert caught.value.term == "gradient"
    assert list(tmp_path.iterdir()) == []
    assert not posterior.training


@pytest.mark.parametrize("mode", ["soft", "hard"])
@pytest.mark.parametrize("micro", [None, 16])
def test_a_wrong_label_is_named_wherever_it_is(mode: Any, micro: int | None) -> None:
    x, y = data()
    wrong = y.clone()
    wrong[:] = 7
    objective = cb.Objective(calibration=cb.WMMCE(mode=mode))
    for train, held_out in (((x, y), (x.clone(), wrong)), ((x, wrong), None)):
        with pytest.raises(InvalidTargetsError, match="but one is 7"):
            cb.fit(cb.Point(net()), train, objective, calibration_data=held_out, micro_batch_size=micro)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.full((90,), 0.7), "integer type, but are torch.float32"),
        (torch.zeros(90, 3, dtype=torch.long), r"targets have shape \[30, 3\]. One-hot"),
    ],
)
def test_labels_of_a_dataset_are_refused_rather_than_truncated(labels: Tensor, message: str) -> None:
    with pytest.raises(DataError, match=message):
        trained(TensorDataset(data()[0], labels))


def test_a_plain_network_is_told_how_to_become_a_posterior() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got Sequential\. Wrap it"):
        cb.fit(net(), data(), cb.Objective())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"got Sequential\. Wrap it"):
        cb.predict(net(), data()[0])  # type: ignore[arg-type]
