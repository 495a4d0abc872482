"""torch-uncertainty: Bayesian layers, and a KL estimated from the weights that were drawn, averaged over layers."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any

from torch import Tensor, nn

from benchmarks.peers.interface import EXAMPLES, Peer, Run
from benchmarks.peers.layers import convolution_arguments, layered_predict, layered_step, with_layers

__all__ = ["PEERS", "library_module"]

_PACKAGE = "torch_uncertainty"


def library_module(name: str) -> Any:
    """A module of the library, without what its packages load beside it: that needs torchvision, and this does not."""
    for package in (_PACKAGE, f"{_PACKAGE}.utils"):
        if package not in sys.modules:
            spec = find_spec(package)
            if spec is None:
                raise ModuleNotFoundError(f"No module named {package!r}")
            sys.modules[package] = module_from_spec(spec)
    return import_module(f"{_PACKAGE}.{name}")


def _converted(net: nn.Module) -> nn.Module:
    layers = library_module("layers.bayesian")

    def linear(layer: nn.Linear) -> Any:
        return layers.BayesLinear(layer.in_features, layer.out_features, bias=layer.bias is not None)

    def conv1d(layer: nn.Conv1d) -> Any:
        return layers.BayesConv1d(**convolution_arguments(layer))

    def conv2d(layer: nn.Conv2d) -> Any:
        return layers.BayesConv2d(**convolution_arguments(layer))

    return with_layers(net, {nn.Linear: linear, nn.Conv1d: conv1d, nn.Conv2d: conv2d})


def _step(net: nn.Module, x: Tensor, y: Tensor) -> Run:
    bayesian = _converted(net)
    kl = library_module("losses").KLDiv(bayesian)
    return layered_step(net, bayesian, x, y, lambda _: kl() / EXAMPLES)


def _predict(net: nn.Module, x: Tensor, samples: int) -> Run:
    return layered_predict(net, _converted(net), x, samples)


PEERS = (
    Peer(
        "torch-uncertainty, layers put in",
        "torch-uncertainty",
        _step,
        _predict,
        "it converts no network: nn.Linear, nn.Conv1d and nn.Conv2d were replaced by its layers, which were loaded "
        "without the rest of it, because that needs torchvision",
    ),
)
