"""Averages of the weights under a Trainer are those of `fit`, and checkpoints hold them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

import calibayes as cb
from calibayes.errors import CheckpointError, DataError, InvalidArgumentError

pytest.importorskip("lightning")
from lightning.pytorch.callbacks import ModelCheckpoint
from tests.lightning.toy import MARKS, N, assert_same, data, fitted, loaded, loader, module, state, trainer, with_batch_norm

from calibayes.lightning import CalibayesModule
from calibayes.lightning.loaders import training_data

pytestmark = [*MARKS, pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty")]
RULES = [cb.EMA(0.8), cb.EqualAverage(start_epoch=2), cb.EqualAverage(start_epoch=1, every="step")]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("scheme", ["fnn", "ca-bnn"])
def test_weights_and_validation_are_those_of_fit(scheme: str, rule: Any) -> None:
    posterior, history = fitted(scheme, epochs=3, averaging=rule, validation=data(50, 1), validation_samples=4)
    here, run = module(scheme, averaging=rule), trainer(3)
    run.fit(here, loader(), loader(50, 15, 1))
    assert_same(here, posterior)
    assert float(run.callback_metrics["val_nll"]) == pytest.approx(history.epochs[-1]["val_nll"], rel=1e-6)
    (tested,) = trainer().test(here, loader(50, 15, 1), verbose=False)
    assert tested["test_nll"] == pytest.approx(history.epochs[-1]["val_nll"], rel=1e-6)


def test_running_statistics_are_those_of_the_averaged_weights() -> None:
    here = module("fnn", lambda: with_batch_norm(dropout=0.0), averaging=cb.EMA(0.8))
    trainer(2).fit(here, loader(60))
    x, _ = data(60)
    inputs = x @ here.posterior.members[0].mean()["0.weight"].T
    buffers = here.posterior.buffer_values()
    assert torch.allclose(buffers["1.running_mean"], inputs.mean(0), rtol=1e-10, atol=1e-10)


def test_a_run_is_taken_up_with_the_same_bits_and_its_checkpoints_hold_the_average(tmp_path: Path) -> None:
    def run(epochs: int, start: str | None = None) -> CalibayesModule:
        here = module("bnn", with_batch_norm, averaging=cb.EMA(0.8))
        keep = ModelCheckpoint(tmp_path, filename="{epoch}", save_top_k=-1)
        begin = tmp_path / f"{start}.ckpt" if start else None
        fitting = trainer(epochs, enable_checkpointing=True, callbacks=[keep])
        fitting.fit(here, loader(shuffle=True), loader(30, 15, 1), ckpt_path=begin)
        if epochs == 3:
            fitting.save_checkpoint(tmp_path / "end.ckpt")
        return here

    whole = run(3)
    for start in ("epoch=0", "epoch=1"):
        found = state(run(3, start))
        assert all(torch.equal(found[name], value) for name, value in state(whole).items())
    for name in ("epoch=2", "end"):
        found = state(loaded(tmp_path / f"{name}.ckpt", "bnn", with_batch_norm))
        assert all(torch.equal(found[key], value) for key, value in state(whole).items())
    # What was written after training can be gone on from as well.
    longer, again = run(4), run(4, "end")
    assert all(torch.equal(state(again)[name], value) for name, value in state(longer).items())


def test_a_checkpoint_of_another_rule_is_refused(tmp_path: Path) -> None:
    run = trainer(1)
    run.fit(module(averaging=cb.EMA(0.8)), loader())
    run.save_checkpoint(tmp_path / "run.ckpt")
    for rule in (None, cb.EMA(0.9)):
        with pytest.raises(CheckpointError, match=r"`averaging` was EMA\(decay=0.8, warm_up=True\) there and is"):
            trainer(2).fit(module(averaging=rule), loader(), ckpt_path=tmp_path / "run.ckpt")


def test_wrong_rules_are_named() -> None:
    wrong: Any = 0.99
    with pytest.raises(InvalidArgumentError, match=r"to be an EMA or an EqualAverage, but got 0\.99"):
        module(averaging=wrong)
    with pytest.raises(InvalidArgumentError, match=r"starts after the last epoch, `epochs=2`"):
        trainer(2).fit(module(averaging=cb.EqualAverage(start_epoch=3)), loader())


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(zip(*data(), strict=True))


def test_a_stream_is_read_once_more_as_it_is() -> None:
    weights = []
    for train in (DataLoader(Stream(), batch_size=21), loader(N, 21)):
        here = module("fnn", lambda: with_batch_norm(dropout=0.0), averaging=cb.EMA(0.8))
        trainer(1).fit(here, train)
        weights.append(state(here))
    for name, value in weights[0].items():
        if not name.endswith("running_var"):  # which is another in batches of other examples
            assert torch.allclose(value.double(), weights[1][name].double(), atol=1e-9), name
    with pytest.raises(DataError, match="needs all training examples once more, but each of 2 processes has a part"):
        training_data(DataLoader(Stream(), batch_size=21), processes=2)
