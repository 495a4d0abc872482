"""For libraries that offer Bayesian layers: put them into a network, train it and predict with it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers.interface import BATCH, Run
from benchmarks.training_step import adam

__all__ = ["convolution_arguments", "layered_predict", "layered_step", "mean_probs", "with_layers"]


def with_layers(net: nn.Module, layers: Mapping[type[nn.Module], Callable[[Any], nn.Module]]) -> nn.Module:
    """A copy of the network with layers of exactly these types replaced; one that computes in its own way stays as it is."""
    net = copy.deepcopy(net)
    for parent in list(net.modules()):
        for name, child in list(parent.named_children()):
            if make := layers.get(type(child)):
                setattr(parent, name, make(child))
    return net


def convolution_arguments(layer: Any) -> dict[str, Any]:
    """Those of PyTorch's convolution, by the names that all libraries share."""
    names = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups")
    return {name: getattr(layer, name) for name in names} | {"bias": layer.bias is not None}


def layered_step(net: nn.Module, bayesian: nn.Module, x: Tensor, y: Tensor, kl: Callable[[nn.Module], Tensor]) -> Run:
    """Cross-entropy and the library's KL, already weighted; every forward pass draws the weights."""
    bayesian.train()
    optimizer = adam([p for p in bayesian.parameters() if p.requires_grad])

    def step() -> None:
        optimizer.zero_grad()
        (F.cross_entropy(bayesian(x), y) + kl(bayesian)).sum().backward()
        optimizer.step()

    return Run(step, _replaced(net, bayesian))


def layered_predict(net: nn.Module, bayesian: nn.Module, x: Tensor, samples: int) -> Run:
    """Forward passes that draw the weights."""
    bayesian.eval()
    return Run(lambda: mean_probs(lambda: bayesian, x, samples), _replaced(net, bayesian))


@torch.no_grad()
def mean_probs(draw: Callable[[], Callable[[Tensor], Tensor]], x: Tensor, samples: int) -> Tensor:
    """The average of class probabilities over ``samples`` networks, in batches."""
    total = torch.zeros(())
    for _ in range(samples):
        network = draw()
        total = total + torch.cat([network(batch).softmax(-1) for batch in x.split(BATCH)])
    return total / samples


def _replaced(net: nn.Module, bayesian: nn.Module) -> int:
    """How many weights of the network are no longer parameters of the other: they became means and scales."""
    kept = dict(bayesian.named_parameters())
    return sum(p.numel() for name, p in net.named_parameters() if p.requires_grad and name not in kept)
