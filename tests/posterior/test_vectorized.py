"""Samples one after the other, in chunks, and all at once give the same step."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest
import torch
from tests.posterior.zoo import Buffers, Case, Recurrent, conv2d, mlp, normal
from torch import Tensor, nn

import calibayes as cb

SAMPLES = 4


def after_training(net: nn.Module, data: tuple[Any, Tensor], **settings: Any) -> dict[str, Tensor]:
    posterior = cb.MeanField(net, init_std=0.2)
    cb.fit(posterior, data, cb.Objective(), epochs=2, batch_size=6, samples=SAMPLES, clip_norm=None, **settings)
    return posterior.state_dict()


def assert_close(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert torch.allclose(one[name], other[name], rtol=1e-10, atol=1e-10), name


def in_double(build: Any, *shape: int) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    x, y = Case(build, normal(*shape)).data()
    return build().double(), (x.double(), y)


@pytest.mark.parametrize("settings", [{}, {"micro_batch_size": 4}], ids=["whole", "parts"])
@pytest.mark.parametrize("chunk", [2, 3, 4, 9, "auto"])
@pytest.mark.parametrize(("build", "shape"), [(mlp, (4,)), (conv2d, (2, 6, 6))], ids=["mlp", "conv"])
def test_chunks_agree(build: Any, shape: tuple[int, ...], chunk: Any, settings: dict[str, Any]) -> None:
    net, data = in_double(build, *shape)
    looped = after_training(net, data, sample_chunk=1, **settings)
    assert_close(after_training(net, data, sample_chunk=chunk, **settings), looped)


class Counting(nn.Module):
    runs: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        type(self).runs += 1
        return self.one(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("chunk", "most"), [(1, 16), (2, 8 + 1), (3, 8 + 1), (4, 4 + 1), ("auto", 4 + 1)])
def test_samples_at_once_are_one_run_of_the_network(chunk: Any, most: int) -> None:
    """Four steps of four samples; there may be one run more, to see whether it can be done."""
    Counting.runs = 0
    after_training(*in_double(Counting, 4), sample_chunk=chunk)
    assert most - 1 <= Counting.runs <= most


def batch_normed() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))


class Lstm(Recurrent):
    def __init__(self) -> None:
        super().__init__(nn.LSTM)


class Branching(nn.Module):
    """What is computed depends on the values, which vmap does not allow."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.one(x)
        return logits if float(logits.detach().sum()) > 0 else 2 * logits


@pytest.mark.parametrize("chunk", [2, 3, 4])
@pytest.mark.parametrize(("build", "shape"), [(batch_normed, (4,)), (Lstm, (4, 3)), (Branching, (4,)), (Buffers, (4,))])
def test_what_vmap_refuses_runs_in_a_loop(build: Any, shape: tuple[int, ...], chunk: int) -> None:
    net, data = in_double(build, *shape)
    looped = after_training(net, data, sample_chunk=1)
    with pytest.warns(UserWarning, match=re.escape("The samples run one after the other")):
        result = after_training(net, data, sample_chunk=chunk)
    assert_close(result, looped)


@pytest.mark.parametrize(("build", "shape"), [(batch_normed, (4,)), (Lstm, (4, 3)), (Branching, (4,))])
def test_left_to_itself_it_falls_back_silently(build: Any, shape: tuple[int, ...]) -> None:
    net, data = in_double(build, *shape)
    assert_close(after_training(net, data), after_training(net, data, sample_chunk=1))
