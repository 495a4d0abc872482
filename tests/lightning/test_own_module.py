"""The calibration term alone, in somebody's own LightningModule."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import calibayes as cb

pytest.importorskip("lightning")
from tests.lightning.own import OwnModule
from tests.lightning.toy import MARKS, adam, data, loader, perceptron, trainer

pytestmark = MARKS


def test_a_step_is_that_of_the_loss_written_out() -> None:
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
