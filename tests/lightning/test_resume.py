"""A run that is taken up from a checkpoint ends with the bits of the run that was never interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

import calibayes as cb
from calibayes.errors import CheckpointError

pytest.importorskip("lightning")
from lightning.pytorch.callbacks import ModelCheckpoint
from tests.lightning.toy import MARKS, N, data, loaded, loader, module, perceptron, state, trainer, with_batch_norm

from calibayes.lightning import CalibayesModule

pytestmark = [*MARKS, pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty")]


class Augmented(Dataset[Any]):
    """Examples with random noise, from PyTorch's global generator."""

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x, y = data()
        return x[index] + 0.1 * torch.randn(6, dtype=torch.float64), y[index]


def halving(optimizer: Any) -> Any:
    return torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)


def made(scheme: str) -> CalibayesModule:
    here = module(scheme, with_batch_norm, scheduler=halving, scheduler_interval="step")
    here.objective = cb.Objective(lam=cb.schedules.Linear(end=30.0, steps=12) if scheme.startswith("ca") else 0.0)
    return here


@pytest.mark.parametrize("scheme", ["fnn", "ca-bnn"])
@pytest.mark.parametrize("validated", [True, False])
def test_bit_for_bit_after_an_epoch(scheme: str, validated: bool, tmp_path: Path) -> None:
    """With shuffling, random augmentation, dropout, batch norm, Adam's state, and schedules of lr and λ."""

    def run(epochs: int, start: int = 0) -> CalibayesModule:
        torch.manual_seed(start)  # the state of the global generator does not matter
        here = made(scheme)
        keep = ModelCheckpoint(tmp_path, filename="{epoch}", save_top_k=-1)
        begin = str(tmp_path / f"epoch={start - 1}.ckpt") if start else None
        train = DataLoader(Augmented(), batch_size=20, shuffle=True)
        fitting = trainer(epochs, enable_checkpointing=True, callbacks=[keep])
        fitting.fit(here, train, loader(30, 15, 1) if validated else None, ckpt_path=begin)
        return here

    whole = state(run(3))
    for done in (1, 2):
        found = state(run(3, start=done))
        assert all(torch.equal(found[name], value) for name, value in whole.items())
    name, last = next(iter(whole.items()))
    assert not torch.equal(torch.load(tmp_path / "epoch=1.ckpt")["state_dict"][f"posterior.{name}"], last)


class Resumable:
    """Batches in an order of their own, which can be taken up in the middle."""

    def __init__(self) -> None:
        self.dataset, self.next = Augmented(), 0

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[list[Tensor]]:
        x, y = data()
        self.next %= 3
        while self.next < 3:
            self.next += 1
            rows = slice(20 * (self.next - 1), 20 * self.next)
            yield [x[rows], y[rows]]

    def state_dict(self) -> dict[str, int]:
        return {"next": self.next}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.next = state["next"]


def test_bit_for_bit_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    """The dataloader has to be one that can be resumed, as Lightning says; noise and dropout go on by their place."""

    def run(start: int = 0) -> CalibayesModule:
        here = made("ca-bnn")
        keep = ModelCheckpoint(tmp_path, filename="{step}", save_top_k=-1, every_n_train_steps=1)
        begin = str(tmp_path / f"step={start}.ckpt") if start else None
        trainer(2, enable_checkpointing=True, callbacks=[keep]).fit(here, Resumable(), ckpt_path=begin)
        return here

    whole = state(run())
    for step in (2, 5):
        found = state(run(start=step))
        assert all(torch.equal(found[name], value) for name, value in whole.items())


def test_a_checkpoint_can_be_loaded_and_saved_as_a_model(tmp_path: Path) -> None:
    here, run = module(net=with_batch_norm), trainer(1)
    run.fit(here, loader())
    run.save_checkpoint(tmp_path / "run.ckpt")
    posterior = loaded(tmp_path / "run.ckpt", "ca-bnn", with_batch_norm).posterior
    cb.save(posterior, tmp_path / "model.safetensors")
    again = cb.load(tmp_path / "model.safetensors", with_batch_norm())
    x, _ = data(20, 1)
    expected = cb.predict(here.posterior, x, samples=5).probs
    for each in (posterior, again):
        assert torch.equal(cb.predict(each, x, samples=5).probs, expected)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"prior_std": 0.5}, r"`prior_std\.\*` is 0\.05 there and 0\.5 here"),
        ({"prior_mean": "initial"}, "`prior_mean` is zero there and stored here"),
    ],
)
def test_a_checkpoint_of_another_prior_is_refused(other: Any, words: str, tmp_path: Path) -> None:
    here, run = module(), trainer(1)
    run.fit(here, loader())
    run.save_checkpoint(tmp_path / "run.ckpt")
    posterior = cb.MeanField(perceptron(), **{"init_std": 0.05, **other})
    with pytest.raises(CheckpointError, match=words):
        CalibayesModule.load_from_checkpoint(tmp_path / "run.ckpt", posterior=posterior, objective=here.objective)
    with pytest.raises(CheckpointError, match=words):
        trainer(2).fit(CalibayesModule(posterior, here.objective), loader(), ckpt_path=str(tmp_path / "run.ckpt"))
