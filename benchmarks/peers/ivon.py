"""ivon-opt: an optimiser whose state is the posterior's width."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers.interface import EXAMPLES, Peer, Run, trainable
from benchmarks.peers.layers import mean_probs

__all__ = ["PEERS"]


def _optimizer(net: nn.Module) -> Any:
    return import_module("ivon").IVON([p for p in net.parameters() if p.requires_grad], lr=1e-4, ess=EXAMPLES)


def _step(net: nn.Module, x: Tensor, y: Tensor) -> Run:
    net = copy.deepcopy(net).train()
    optimizer = _optimizer(net)

    def step() -> None:
        with optimizer.sampled_params(train=True):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
        optimizer.step()

    return Run(step, trainable(net))


def _predict(net: nn.Module, x: Tensor, samples: int) -> Run:
    net = copy.deepcopy(net).eval()
    optimizer = _optimizer(net)

    def predict() -> Tensor:
        total = torch.zeros(())
        for _ in range(samples):
            with optimizer.sampled_params():
                total = total + mean_probs(lambda: net, x, 1)
        return total / samples

    return Run(predict, trainable(net))


PEERS = (Peer("ivon", "ivon-opt", _step, _predict, "its own update in place of Adam's; the KL is part of that update"),)
