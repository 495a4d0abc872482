from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from tests.posterior.zoo import compiled, mlp, refusing
from torch import nn

import calibayes as cb
from calibayes.errors import UnsupportedNetworkError

kinds = pytest.mark.parametrize("kind", [cb.Point, cb.MeanField])


def scripted() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(mlp())


def with_graph() -> nn.Module:
    net = nn.Linear(4, 3)
    net.cached = net.weight * 2
    return net


def recomputing(flag: str) -> nn.Module:
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    setattr(net[1], flag, True)
    return net


@kinds
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: nn.DataParallel(mlp()), r"'it' is wrapped in DataParallel\. Pass the network inside it \(`net.module`"),
        (lambda: nn.Sequential(nn.DataParallel(mlp())), "'0' is wrapped in DataParallel"),
        (scripted, "wrapped in RecursiveScriptModule"),
        (lambda: nn.Sequential(scripted(), nn.ReLU()), "'0' is wrapped in RecursiveScriptModule"),
        (lambda: nn.Sequential(nn.LazyLinear(3)), "'0.weight' has no shape yet. Did you forget to run one batch"),
        (lambda: nn.Linear(4, 3, device="meta"), "'weight' is on the meta device and has no values"),
        (lambda: nn.Sequential(nn.Embedding(5, 3, sparse=True)), "'0' has sparse=True, max_norm=None.*sparse=False"),
        (lambda: nn.Sequential(nn.EmbeddingBag(5, 3, max_norm=1.0)), "'0' has sparse=False, max_norm=1.0"),
        (with_graph, "Linear cannot be copied.*plain attribute"),
        (lambda: nn.Linear(4, 3, dtype=torch.complex64), "'weight' is of type torch.complex64; only real weights"),
        (lambda: recomputing("gradient_checkpointing"), r"'1' has gradient_checkpointing=True.*smaller micro-batches"),
        (lambda: recomputing("grad_checkpointing"), "'1' has grad_checkpointing=True"),
        (lambda: torch.relu, "`net` to be a torch.nn.Module, but got builtin"),
    ],
)
def test_what_cannot_be_handled_is_named(kind: Any, build: Any, message: str) -> None:
    with pytest.raises(UnsupportedNetworkError, match=message):
        kind(build())


@kinds
def test_what_data_parallel_holds_can_be_passed(kind: Any) -> None:
    wrapped, x = nn.DataParallel(mlp()), torch.randn(5, 4)
    assert torch.equal(kind(wrapped.module)(x), wrapped.module(x))


def test_parameters_of_a_compiled_network_have_plain_names() -> None:
    net = nn.Sequential(compiled(nn.Linear(4, 6)), nn.Linear(6, 3))
    assert [choice.name for choice in cb.MeanField(net).choices] == ["0.weight", "0.bias", "1.weight", "1.bias"]


@kinds
def test_a_network_compiled_in_place_runs_uncompiled(kind: Any) -> None:
    net, x = mlp(), torch.randn(5, 4)
    expected = net(x)
    net.compile(backend=refusing)
    assert torch.equal(kind(net)(x), expected)
