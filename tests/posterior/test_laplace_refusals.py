"""Networks, data and settings that the last-layer Laplace approximation rejects."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from tests.posterior.laplace_cases import WIDE, Net, data, fitted
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import calibayes as cb
from calibayes.errors import (
    DataError,
    EmptySelectionError,
    InvalidArgumentError,
    InvalidTargetsError,
    NetworkOutputError,
    UnsupportedNetworkError,
)


class Changed(Net):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class Twice(Net):
    def __init__(self) -> None:
        super().__init__(5)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.head(self.body(x)))
        return logits


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)
        self.head.weight = self.body.weight

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(x).tanh())
        return logits


@pytest.mark.parametrize(
    ("net", "error", "message"),
    [
        (Changed(), UnsupportedNetworkError, "not that of an nn.Linear: that of 'head'"),
        (nn.Sequential(nn.Unflatten(1, (4, 1)), nn.Conv1d(4, 3, 1), nn.Flatten()), UnsupportedNetworkError, "none runs"),
        (Twice(), UnsupportedNetworkError, "'head' runs 2 times"),
        (Tied(), UnsupportedNetworkError, "tied with 'body.weight'"),
        (nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), UnsupportedNetworkError, "more than an nn.Linear"),
        (Net(1), NetworkOutputError, "needs two outputs"),
        (nn.Sequential(nn.Unflatten(1, (2, 2)), nn.Linear(2, 3)), NetworkOutputError, "shape"),
        (cb.Ensemble([cb.Point(Net())]), InvalidArgumentError, "members one by one"),
    ],
)
def test_networks_that_are_refused(net: nn.Module, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fitted(net, (torch.randn(6, 4), torch.zeros(6, dtype=torch.long)))


@pytest.mark.parametrize(
    "where", ["body.*", "*", "head.weight", ["body.weight", "head.*"], lambda name, _: name == "head.bias"]
)
def test_weights_other_than_those_of_the_last_layer_are_refused(where: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"gives the network's output: head.weight, head.bias"):
        fitted(where=where)
    with pytest.raises(EmptySelectionError, match="nothing"):
        fitted(where="nothing.*")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior_precision": 0.0}, "positive finite number, but got 0.0"),
        ({"prior_precision": -1}, "but got -1"),
        ({"prior_precision": float("nan")}, "nan"),
        ({"prior_precision": "marginal"}, "'marginal-likelihood' or 'validation', but got 'marginal'"),
        ({"prior_precision": "validation"}, "needs `validation` data"),
        ({"validation": data()}, "only used with"),
        ({"covariance": "diagonal"}, "'diagonal'"),
        ({"batch_size": 0}, "`batch_size`"),
        ({"temperature": 0}, "`temperature`"),
        ({"seed": "a"}, "`seed`"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        fitted(**settings)


X, Y = torch.linspace(-1, 1, 160, dtype=WIDE).view(40, 4), torch.arange(40) % 3
BROKEN = X.index_put((torch.tensor(11), torch.tensor(2)), torch.tensor(math.nan, dtype=WIDE))


@pytest.mark.parametrize(
    ("xy", "error", "message"),
    [
        ((X[:0], Y[:0]), DataError, "no examples"),
        (TensorDataset(X[:0], Y[:0]), DataError, "no examples"),
        ((X, Y + 1), InvalidTargetsError, "0 … 2 for a network with 3 outputs, but one is 3"),
        ((X, Y.double()), DataError, "integer type"),
        ((BROKEN, Y), DataError, "'head' is NaN or infinite for example 1 of a batch of `data`"),
        ((X.float(), Y), DataError, r"The inputs are torch\.float32"),
    ],
)
def test_data_that_are_refused(xy: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fitted(xy=xy, batch_size=10)


def test_a_last_linear_that_does_not_give_the_output_is_reported_after_training() -> None:
    with pytest.raises(UnsupportedNetworkError, match="pass its name as `layer`"):
        cb.fit(cb.LastLayerLaplace(Changed()), data(dtype=torch.float32), cb.Objective(), epochs=1)


def test_a_frozen_last_layer_is_refused() -> None:
    net = Net()
    net.head.requires_grad_(False)
    with pytest.raises(EmptySelectionError, match="'head' is frozen"):
        cb.LastLayerLaplace(net)
