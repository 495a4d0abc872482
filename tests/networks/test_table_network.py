"""The perceptron with heads, against heads computed one by one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import calibayes as cb
from calibayes.errors import InvalidArgumentError
from calibayes.networks.table_network import HeadedMLP


def one_by_one(net: Any, x: torch.Tensor, head: int) -> torch.Tensor:
    x = x * net.input_scale[head]
    for layer in net.layers:
        x = torch.relu((x @ layer.weight.T) * layer.scale[head] + layer.bias[head])
    logits: torch.Tensor = x @ net.last[head] + net.last_bias[head]
    return logits


@pytest.mark.parametrize(("rows", "heads"), [(8, 4), (7, 4), (1, 4), (5, 1), (3, 8)])
def test_in_training_each_example_goes_through_one_head_in_turn(rows: int, heads: int) -> None:
    torch.manual_seed(0)
    net: Any = HeadedMLP(6, [5, 4], classes=3, heads=heads, dropout=0.0)
    for layer in net.layers:
        torch.nn.init.normal_(layer.scale)
    x = torch.randn(rows, 6)
    expected = torch.stack([one_by_one(net, x[row], row % heads) for row in range(rows)])
    assert torch.allclose(net(x), expected, atol=1e-5)


def test_in_evaluation_it_is_the_mean_of_the_heads() -> None:
    torch.manual_seed(0)
    net = HeadedMLP(6, [5], classes=3, heads=4).eval()
    x = torch.randn(9, 6)
    expected = torch.stack([one_by_one(net, x, head).softmax(-1) for head in range(4)]).mean(0)
    assert torch.allclose(net(x).exp(), expected, atol=1e-6)


def test_a_head_has_the_gradient_of_its_own_examples() -> None:
    torch.manual_seed(0)
    net = HeadedMLP(6, [5], classes=3, heads=2, dropout=0.0)
    net(torch.randn(4, 6))[[0, 2]].sum().backward()
    assert net.last.grad is not None
    assert net.last.grad[0].any()
    assert not net.last.grad[1].any()


@pytest.mark.parametrize("method", ["ema", "mixture", "swag", "mc-dropout"])
def test_methods_train_it(method: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(120, 4)
    y = (x[:, 0] > 0).long()
    plan = cb.build(method, HeadedMLP(4, [16], classes=2, heads=4), learning_rate=0.01)
    cb.fit(plan.posterior, (x, y), plan.objective, epochs=12, batch_size=30, **plan.fit)
    assert cb.metrics.accuracy(cb.predict(plan.posterior, x).probs, y) > 0.85


def test_no_hidden_layer_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one width"):
        HeadedMLP(4, [], classes=2)
