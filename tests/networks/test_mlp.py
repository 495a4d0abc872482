from __future__ import annotations

from typing import Any

import pytest
import torch

from calibayes.errors import InvalidArgumentError
from calibayes.networks import MLP


@pytest.mark.parametrize("hidden", [[], [7], [7, 5], (7, 5, 3)])
def test_number_of_weights(hidden: list[int]) -> None:
    widths = [12, *hidden, 4]
    expected = sum(a * b + b for a, b in zip(widths, widths[1:], strict=False))  # noqa: RUF007
    assert sum(weight.numel() for weight in MLP(12, hidden, 4).parameters()) == expected


def test_flattens_its_input() -> None:
    torch.manual_seed(0)
    net = MLP(12, [5], 3)
    x = torch.randn(6, 1, 3, 4)
    assert net(x).shape == (6, 3)
    assert torch.equal(net(x), net(x.reshape(6, 12)))


def test_computes_relu_between_layers_and_none_at_the_end() -> None:
    torch.manual_seed(0)
    net = MLP(4, [6], 3)
    x = torch.randn(10, 4)
    (w1, b1, w2, b2) = net.parameters()
    expected = (x @ w1.T + b1).clamp_min(0) @ w2.T + b2
    assert torch.allclose(net(x), expected, atol=1e-6)
    assert (net(x) < 0).any()


def test_without_hidden_layers_it_is_linear() -> None:
    torch.manual_seed(0)
    net = MLP(4, [], 3)
    x, y = torch.randn(2, 5, 4)
    assert torch.allclose(net((x + y) / 2), (net(x) + net(y)) / 2, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, [5], 3), "`in_features` .* but got 0"),
        ((4, [5, -1], 3), r"`hidden\[1\]` .* but got -1"),
        ((4, [5], 1), "`classes` to be an integer of at least 2, but got 1"),
        ((4, 5, 3), r"`hidden` to be a sequence .* but got 5. For one layer, pass \[5\]"),
    ],
)
def test_bad_sizes_are_quoted(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        MLP(*arguments)


def test_input_of_another_size_is_explained() -> None:
    with pytest.raises(InvalidArgumentError, match="examples of 12 numbers each, as in `in_features`, but got 10"):
        MLP(12, [5], 3)(torch.zeros(2, 10))
