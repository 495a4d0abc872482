"""What `predict` takes for logits and examples, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.posterior.zoo import CASES, SeveralInputs, mlp
from tests.test_predictive import wide
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import calibayes as cb
from calibayes.errors import DataError, InvalidArgumentError, NetworkOutputError


class Logits:
    def __init__(self, logits: Tensor) -> None:
        self.logits = logits


class Output(nn.Module):
    """A linear layer whose output is put into some form."""

    def __init__(self, form: Callable[[Tensor], Any], outputs: int = 3) -> None:
        super().__init__()
        self.linear, self.form = nn.Linear(4, outputs), form

    def forward(self, x: Tensor) -> Any:
        return self.form(self.linear(x))


def test_an_object_with_logits_is_as_good() -> None:
    net = nn.Linear(4, 3)
    wrapped = Output(Logits)
    wrapped.linear = net
    x = torch.randn(5, 4)
    assert torch.equal(cb.predict(cb.Point(wrapped), x).probs, cb.predict(cb.Point(net), x).probs)


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (Output(nn.Identity(), outputs=1), r"shape \[7, K\] with K ≥ 2.*returned \[7, 1\].*needs two outputs"),
        (Output(lambda z: z[:, 0]), r"returned \[7\]"),
        (Output(lambda z: z[None]), r"returned \[1, 7, 3\]"),
        (Output(lambda z: z.T), r"returned \[3, 7\]"),
        (Output(lambda z: (z, z)), "tensor of logits.*but got tuple"),
        (Output(lambda z: {"scores": z}), "but got dict"),
    ],
)
@pytest.mark.parametrize("kind", [cb.Point, cb.MeanField])
def test_what_is_not_logits_is_refused(kind: Any, net: nn.Module, message: str) -> None:
    x, y = torch.randn(7, 4), torch.zeros(7, dtype=torch.long)
    with pytest.raises(NetworkOutputError, match=message):
        cb.predict(kind(net), x)
    with pytest.raises(NetworkOutputError, match=message):
        cb.fit(kind(net), (x, y), cb.Objective(), epochs=1)


@pytest.mark.parametrize("kind", [cb.Point, cb.MeanField])
def test_a_network_that_ends_in_a_softmax_is_not_trained(kind: Any) -> None:
    posterior = kind(nn.Sequential(mlp(), nn.Softmax(-1)))
    start = {name: vector.clone() for name, vector in posterior.state_dict().items()}
    with pytest.raises(NetworkOutputError, match=r"look like probabilities.*drop the final softmax"):
        cb.fit(posterior, CASES["mlp"].data(), cb.Objective(), epochs=1, samples=2)
    assert all(torch.equal(start[name], vector) for name, vector in posterior.state_dict().items())


def random_loaders() -> dict[str, DataLoader[Any]]:
    data = TensorDataset(torch.randn(8, 4), torch.zeros(8))
    return {
        "shuffle": DataLoader(data, shuffle=True),
        "batch sampler": DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 2, drop_last=False)),
        "subset": DataLoader(data, sampler=SubsetRandomSampler(range(8))),
        "weighted": DataLoader(data, sampler=WeightedRandomSampler([1.0] * 8, 8)),
    }


@pytest.mark.parametrize("loader", random_loaders().values(), ids=random_loaders().keys())
def test_a_random_order_cannot_be_matched(loader: DataLoader[Any]) -> None:
    with pytest.raises(DataError, match=r"shuffled DataLoader cannot be matched.*Use `shuffle=False`"):
        cb.predict(wide(), loader)


@pytest.mark.parametrize("x", [torch.empty(0, 4), TensorDataset(torch.empty(0, 4)), np.empty((0, 4), np.float32)])
def test_nothing_to_predict(x: Any) -> None:
    with pytest.raises(DataError, match="`x` has no examples"):
        cb.predict(wide(), x)


def test_inputs_of_different_lengths_are_quoted() -> None:
    with pytest.raises(DataError, match=r"same number of examples, but their shapes are \[5, 4\], \[6, 2\]"):
        cb.predict(wide(SeveralInputs()), (torch.randn(5, 4), torch.randn(6, 2)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 0}, "`samples` to be a positive integer or 'mean' .*, but got 0"),
        ({"samples": "median"}, "`samples` to be a positive integer or 'mean' .*, but got 'median'"),
        ({"samples": True}, "`samples` .* but got True"),
        ({"batch_size": -1}, "`batch_size` to be a positive integer, but got -1"),
    ],
)
def test_bad_settings_are_quoted(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        cb.predict(wide(), torch.randn(5, 4), **settings)
