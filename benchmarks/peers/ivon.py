"""ivon-opt: an optimiser whose state is the posterior's width."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers.interface import EXAMPLES, INIT_STD, PRIOR_STD, Peer, Run, trainable
from benchmarks.peers.layers import mean_probs

__all__ = ["NATURAL_GRADIENT", "PEERS", "natural_gradient_settings"]


def natural_gradient_settings(
    *, examples: int = EXAMPLES, beta: float = 0.1, prior_std: float = PRIOR_STD, init_std: float = INIT_STD
) -> dict[str, float | bool]:
    r"""IVON's settings for the update that `calibayes.NaturalGradient` makes.

    Its ``ess`` is $|D|/\beta$ and its ``weight_decay`` $\delta = \beta/(|D| s^2)$ for a prior of standard deviation $s$; the
    curvature starts where $1/\sqrt{\mathrm{ess}\,(h_0 + \delta)}$ is ``init_std``.
    """
    ess = examples / beta
    decay = 1 / (ess * prior_std**2)
    start = 1 / (ess * init_std**2) - decay
    return {"ess": ess, "weight_decay": decay, "hess_init": start, "beta1": 0.9, "beta2": 0.999, "rescale_lr": False}


def _optimizer(net: nn.Module, **settings: Any) -> Any:
    parameters = [p for p in net.parameters() if p.requires_grad]
    return import_module("ivon").IVON(parameters, **{"lr": 1e-4, "ess": EXAMPLES} | settings)


def _natural_step(net: nn.Module, x: Tensor, y: Tensor) -> Run:
    return _step(net, x, y, **natural_gradient_settings())


def _step(net: nn.Module, x: Tensor, y: Tensor, **settings: Any) -> Run:
    net = copy.deepcopy(net).train()
    optimizer = _optimizer(net, **settings)

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
NATURAL_GRADIENT = (
    Peer("ivon", "ivon-opt", _natural_step, None, "with the settings that make its update that of calibayes.NaturalGradient"),
)
