"""blitz: Bayesian layers, whose KL is estimated from the weights that were drawn."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from torch import Tensor, nn

from benchmarks.peers.interface import EXAMPLES, Peer, Run
from benchmarks.peers.layers import convolution_arguments, layered_predict, layered_step, with_layers

__all__ = ["PEERS"]


def _converted(net: nn.Module) -> nn.Module:
    modules = import_module("blitz.modules")

    def linear(layer: nn.Linear) -> Any:
        return modules.BayesianLinear(layer.in_features, layer.out_features, bias=layer.bias is not None)

    def conv1d(layer: nn.Conv1d) -> Any:
        return modules.BayesianConv1d(**convolution_arguments(layer) | {"kernel_size": layer.kernel_size[0]})

    def conv2d(layer: nn.Conv2d) -> Any:
        return modules.BayesianConv2d(**convolution_arguments(layer))

    return with_layers(net, {nn.Linear: linear, nn.Conv1d: conv1d, nn.Conv2d: conv2d})


def _step(net: nn.Module, x: Tensor, y: Tensor) -> Run:
    kl = import_module("blitz.losses").kl_divergence_from_nn
    return layered_step(net, _converted(net), x, y, lambda bayesian: kl(bayesian) / EXAMPLES)


def _predict(net: nn.Module, x: Tensor, samples: int) -> Run:
    return layered_predict(net, _converted(net), x, samples)


PEERS = (
    Peer(
        "blitz, layers put in",
        "blitz-bayesian-pytorch",
        _step,
        _predict,
        "it converts no network: nn.Linear, nn.Conv1d and nn.Conv2d were replaced by its layers",
    ),
)
