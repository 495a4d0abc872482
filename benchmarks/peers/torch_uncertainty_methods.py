"""torch-uncertainty: deep ensembles, packed ensembles and SWAG."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.peers.epochs import mean_of_members, member_epoch
from benchmarks.peers.interface import BATCH, MEMBERS, RANK, SWAG_EPOCHS, Data, Method, Run, trainable
from benchmarks.peers.torch_uncertainty import library_module

__all__ = ["ENSEMBLES", "SWAG_EACH_EPOCH", "SWAG_EACH_STEP"]

_PACKAGE = "torch-uncertainty"
Make = Callable[[nn.Module], nn.Module]


def _deep(net: nn.Module) -> nn.Module:
    ensemble: nn.Module = library_module("methods.deep_ensembles").deep_ensembles(net, num_estimators=MEMBERS)
    return ensemble


def packed(layer: Callable[..., nn.Module], alpha: int, net: nn.Module) -> nn.Module:
    """A copy of a network of linear layers with packed ones in their place; the first and the last of them know that."""
    net = copy.deepcopy(net)
    names = [name for name, part in net.named_modules() if isinstance(part, nn.Linear)]
    for name in names:
        old = net.get_submodule(name)
        assert isinstance(old, nn.Linear)
        ends = {"first": name == names[0], "last": name == names[-1]}
        new = layer(old.in_features, old.out_features, alpha=alpha, num_estimators=MEMBERS, bias=old.bias is not None, **ends)
        net.set_submodule(name, new)
    return net


def _packed(alpha: int, net: nn.Module) -> nn.Module:
    return packed(library_module("layers.packed").PackedLinear, alpha, net)


def _ensemble_fit(make: Make, net: nn.Module, data: Data) -> Run:
    ensemble = make(net)
    return Run(member_epoch(ensemble, data, members=MEMBERS), trainable(ensemble))


def _ensemble_predict(make: Make, net: nn.Module, data: Data, x: Tensor, samples: int | None) -> Run:
    ensemble = make(net).eval()
    return Run(lambda: _mean_probs(ensemble, x, MEMBERS), trainable(ensemble))


def _ensemble(name: str, make: Make, note: str) -> Method:
    return Method(f"torch-uncertainty, {name}", _PACKAGE, partial(_ensemble_fit, make), partial(_ensemble_predict, make), note)


def _swag(net: nn.Module, samples: int) -> Any:
    """It collects at every number above zero that it is told is an epoch's."""
    method = library_module("methods.swag").SWAG
    return method(copy.deepcopy(net), cycle_start=0, cycle_length=1, max_num_models=RANK, num_estimators=samples)


def _swag_fit(every_step: bool, net: nn.Module, data: Data) -> Run:
    swag, numbers = _swag(net, RANK), count(1)

    def collect() -> None:
        swag.update_wrapper(next(numbers))

    train = member_epoch(swag, data, after_step=collect if every_step else None)

    def epochs() -> None:
        for _ in range(SWAG_EPOCHS):
            train()
            if not every_step:
                collect()

    return Run(epochs, trainable(net))


def _swag_predict(net: nn.Module, data: Data, x: Tensor, samples: int | None) -> Run:
    assert samples is not None
    swag, numbers = _swag(net, samples), count(1)
    train = member_epoch(swag, data, after_step=lambda: swag.update_wrapper(next(numbers)))
    for _ in range(SWAG_EPOCHS):
        train()
    swag.bn_update(DataLoader(TensorDataset(*data), batch_size=BATCH), device=None)
    swag.eval()
    for sample in swag.samples:
        sample.eval()
    return Run(lambda: _mean_probs(swag, x, samples), trainable(net))


@torch.no_grad()
def _mean_probs(net: nn.Module, x: Tensor, members: int) -> Tensor:
    return torch.cat([mean_of_members(net(batch), members) for batch in x.split(BATCH)])


ENSEMBLES = (
    _ensemble("deep ensemble", _deep, "its deep_ensembles: one loss and one optimiser of all members, run in turn"),
    _ensemble(f"packed, α = {MEMBERS}", partial(_packed, MEMBERS), "PackedLinear put in; members as wide as the network"),
    _ensemble("packed, α = 2", partial(_packed, 2), "PackedLinear put in; as its papers use it, with narrower members"),
)
_NOTE = "its update_wrapper also draws the networks of a prediction, which is why its prediction draws nothing"
SWAG_EACH_EPOCH = Method("torch-uncertainty SWAG", _PACKAGE, partial(_swag_fit, False), _swag_predict, _NOTE)
SWAG_EACH_STEP = Method("torch-uncertainty SWAG", _PACKAGE, partial(_swag_fit, True), None, _NOTE)
