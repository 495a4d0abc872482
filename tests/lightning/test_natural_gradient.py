"""Natural-gradient steps under a Trainer are those of `fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import calibayes as cb

pytest.importorskip("lightning")
from tests.lightning.toy import MARKS, N, loader, trainer, with_batch_norm

from calibayes.lightning import CalibayesModule

pytestmark = MARKS
OPTIMIZER = cb.NaturalGradient(lr=0.1, betas=(0.9, 0.95), point_lr=0.01)


def posterior() -> cb.MeanField:
    """Batch norms are points beside the pairs."""
    net: nn.Module = with_batch_norm()
    return cb.MeanField(net, prior_std={"0.*": 0.3, "*": 0.2}, init_std=0.05)


def objective() -> cb.Objective:
    beta = cb.schedules.Linear(start=1.0, end=0.2, steps=6)
    return cb.Objective(lam=10.0, beta=beta, calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1))


def halved(optimizer: Any) -> Any:
    return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)


def module(**settings: Any) -> CalibayesModule:
    chosen = {"optimizer": OPTIMIZER, "scheduler": halved, "samples": 2, "seed": 3, **settings}
    return CalibayesModule(posterior(), objective(), **chosen)


@pytest.mark.parametrize("size", ["auto", N])
def test_weights_are_those_of_fit(size: Any) -> None:
    """The optimiser is made before the dataloaders are, and finds out how many examples there are all the same."""
    expected = posterior()
    cb.fit(expected, loader(), objective(), optimizer=OPTIMIZER, scheduler=halved, epochs=3, samples=2, seed=3, sample_chunk=1)
    here = module(dataset_size=size)
    trainer(3).fit(here, loader())
    for name, value in expected.state_dict().items():
        assert torch.allclose(here.posterior.state_dict()[name], value, rtol=1e-9, atol=1e-9), name
    assert not torch.allclose(here.posterior.state_dict()["groups.0.rho"], posterior().state_dict()["groups.0.rho"], atol=1e-2)


def test_a_checkpoint_is_resumed_from_with_the_same_bits(tmp_path: Path) -> None:
    whole, first, second = module(), module(), module()
    trainer(4).fit(whole, loader())
    run = trainer(2)
    run.fit(first, loader())
    run.save_checkpoint(tmp_path / "half.ckpt")
    trainer(4).fit(second, loader(), ckpt_path=tmp_path / "half.ckpt")
    for name, value in whole.posterior.state_dict().items():
        assert torch.equal(second.posterior.state_dict()[name], value), name
