"""torchbnn: Bayesian layers, and the mean of the closed-form KL over weights."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from torch import Tensor, nn

from benchmarks.peers.interface import PRIOR_STD, Peer, Run
from benchmarks.peers.layers import convolution_arguments, layered_predict, layered_step, with_layers

__all__ = ["PEERS"]

_KL_WEIGHT = 0.1


def _converted(net: nn.Module) -> nn.Module:
    module = import_module("torchbnn")

    def linear(layer: nn.Linear) -> Any:
        return module.BayesLinear(0.0, PRIOR_STD, layer.in_features, layer.out_features, bias=layer.bias is not None)

    def conv2d(layer: nn.Conv2d) -> Any:
        return module.BayesConv2d(0.0, PRIOR_STD, **convolution_arguments(layer))

    return with_layers(net, {nn.Linear: linear, nn.Conv2d: conv2d})


def _step(net: nn.Module, x: Tensor, y: Tensor) -> Run:
    kl = import_module("torchbnn").BKLLoss(reduction="mean", last_layer_only=False)
    return layered_step(net, _converted(net), x, y, lambda bayesian: _KL_WEIGHT * kl(bayesian))


def _predict(net: nn.Module, x: Tensor, samples: int) -> Run:
    return layered_predict(net, _converted(net), x, samples)


PEERS = (
    Peer(
        "torchbnn, layers put in",
        "torchbnn",
        _step,
        _predict,
        "it converts no network: nn.Linear and nn.Conv2d were replaced by its layers; it has none for nn.Conv1d",
    ),
)
