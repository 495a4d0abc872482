"""Dropout of columns, words and patches."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError


def _within(result: float, p: float, count: int) -> bool:
    """Return True if a share of ``count`` independent draws lies within four standard errors of ``p``."""
    return abs(result - p) < 4 * math.sqrt(p * (1 - p) / count)


def test_columns_are_dropped_one_by_one_and_keep_their_mean() -> None:
    layer, table = cb.InputDropout(0.3), torch.ones(2000, 20, dtype=torch.float64)
    dropped = layer(table)
    assert set(dropped.unique().tolist()) == {0.0, 1 / 0.7}
    hidden = (dropped == 0).double()
    assert _within(float(hidden.mean()), 0.3, hidden.numel())
    correlations = torch.corrcoef(hidden.T) - torch.eye(20)
    assert float(correlations.abs().max()) < 5 / math.sqrt(2000)


def test_words_become_the_replacement_and_padding_stays() -> None:
    words = torch.randint(2, 50, (400, 30))
    words[:, 25:] = 0
    dropped = cb.InputDropout(0.2, "words", replacement=1)(words)
    hidden = dropped == 1
    assert torch.equal(dropped[~hidden], words[~hidden])
    assert not bool(hidden[:, 25:].any())
    assert _within(float(hidden[:, :25].double().mean()), 0.2, 400 * 25)
    # In training a word may be hidden here and visible there.
    same = words[:, :25] == 7
    assert 0 < int(hidden[:, :25][same].sum()) < int(same.sum())


def test_padding_can_be_dropped_if_asked_for() -> None:
    dropped = cb.InputDropout(0.5, "words", replacement=9, padding=None)(torch.zeros(40, 50, dtype=torch.int32))
    assert dropped.dtype == torch.int32
    assert _within(float((dropped == 9).double().mean()), 0.5, 2000)


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_patches_are_whole_squares_in_all_channels(dtype: torch.dtype) -> None:
    images = torch.randint(1, 255, (300, 3, 10, 9)).to(dtype)
    dropped = cb.InputDropout(0.4, "patches", patch=4)(images)
    hidden = dropped == 0
    assert dropped.dtype == dtype
    assert torch.equal(dropped[~hidden], images[~hidden])
    shares = []
    for top in (0, 4, 8):
        for left in (0, 4, 8):
            square = hidden[:, :, top : top + 4, left : left + 4].flatten(1)
            assert torch.equal(square.all(1), square.any(1))
            shares.append(square[:, 0])
    assert _within(float(torch.stack(shares).double().mean()), 0.4, 9 * 300)


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        (cb.InputDropout(0.5), torch.randn(4, 3)),
        (cb.InputDropout(0.5, "words", replacement=1), torch.randint(0, 9, (4, 3))),
        (cb.InputDropout(0.5, "patches"), torch.randn(2, 3, 8, 8)),
        (cb.InputDropout(0.0).train(), torch.randn(4, 3)),
    ],
)
def test_nothing_is_hidden_in_evaluation_mode_or_without_probability(layer: cb.InputDropout, inputs: Tensor) -> None:
    assert torch.equal((layer.eval() if layer.p else layer)(inputs), inputs)


def test_the_global_generator_decides() -> None:
    layer, table = cb.InputDropout(0.5), torch.ones(8, 8)
    runs = []
    for _ in range(2):
        torch.manual_seed(3)
        runs.append(layer(table))
    assert torch.equal(*runs)
    assert not torch.equal(runs[0], layer(table))


def test_any_posterior_trains_with_it_in_front() -> None:
    net = nn.Sequential(cb.InputDropout(0.2), nn.Linear(5, 3))
    data = torch.randn(40, 5), torch.arange(40) % 3
    posterior = cb.MeanField(net)
    cb.fit(posterior, data, cb.Objective(), epochs=2, samples=2, batch_size=20)
    assert set(posterior.mean()) == {"1.weight", "1.bias"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"p": 1.0}, "below 1, but got 1.0"),
        ({"p": True}, "below 1, but got True"),
        ({"p": 0.1, "of": "pixels"}, "but got 'pixels'"),
        ({"p": 0.1, "of": "words"}, "needs a `replacement`"),
        ({"p": 0.1, "of": "words", "replacement": 0.5}, "`replacement` to be an integer, but got 0.5"),
        ({"p": 0.1, "of": "patches", "patch": 0}, "`patch` to be an integer of at least 1, but got 0"),
        ({"p": 0.1, "of": "patches", "value": "black"}, "`value` to be a number, but got 'black'"),
    ],
)
def test_refused_settings(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        cb.InputDropout(**arguments)


@pytest.mark.parametrize(
    ("layer", "inputs", "message"),
    [
        (cb.InputDropout(0.1), torch.ones(2, 3).long(), r"a table \[n, F\].*\[2, 3\] of torch.int64"),
        (cb.InputDropout(0.1, "words", replacement=1), torch.ones(2, 3), "word indices"),
        (cb.InputDropout(0.1, "patches"), torch.ones(2, 3), "images"),
    ],
)
def test_refused_inputs(layer: cb.InputDropout, inputs: Tensor, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        layer.eval()(inputs)
