"""Somebody's own LightningModule, which has the calibration term added to its loss."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

pytest.importorskip("lightning")
from lightning.pytorch import LightningModule
from tests.lightning.toy import adam, perceptron
from torch import Tensor

import calibayes as cb


class OwnModule(LightningModule):  # type: ignore[misc]
    def __init__(self, lam: float) -> None:
        super().__init__()
        self.net = perceptron(dropout=0.0)
        self.objective = cb.Objective(lam=lam, calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1))  # the first line

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        x, y = batch
        logits = self.net(x)
        loss = F.cross_entropy(logits, y, label_smoothing=0.1)
        return loss + self.objective.term(logits, y, step=self.global_step, group="auto")  # the second

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return adam(self.parameters())
