"""The layer that takes bytes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError
from calibayes.networks import IMAGENET, Normalize


def test_bytes_and_numbers_give_the_same() -> None:
    layer = Normalize(*IMAGENET)
    images = torch.arange(256, dtype=torch.uint8).repeat(12).view(1, 3, 32, 32)
    result = layer(images)
    assert result.dtype == torch.float32
    assert torch.equal(result, layer(images / 255))
    for channel, (mean, std) in enumerate(zip(*IMAGENET, strict=True)):
        expected = (images[0, channel].double() / 255 - mean) / std
        assert torch.allclose(result[0, channel].double(), expected, atol=1e-6)


def test_a_network_of_another_precision_is_fed_what_it_needs() -> None:
    net = nn.Sequential(Normalize(*IMAGENET), nn.Conv2d(3, 2, 3)).double()
    assert net(torch.zeros(1, 3, 8, 8, dtype=torch.uint8)).dtype == torch.float64


def test_it_trains_as_part_of_a_posterior_and_stays_as_it_is() -> None:
    x, y = torch.randint(256, (64, 3, 8, 8), dtype=torch.uint8), torch.arange(64) % 3
    posterior = cb.MeanField(nn.Sequential(Normalize(*IMAGENET), nn.Flatten(), nn.Linear(192, 3)))
    cb.fit(posterior, (x, y), cb.Objective(lam=1.0), epochs=1, batch_size=32, samples=2)
    assert cb.predict(posterior, x).probs.shape == (64, 3)
    buffers = posterior.buffer_values()
    assert torch.equal(buffers["0.mean"].flatten(), torch.tensor(IMAGENET[0]))
    assert torch.equal(buffers["0.std"].flatten(), torch.tensor(IMAGENET[1]))


def test_it_says_what_it_does() -> None:
    assert repr(Normalize((0.5,), (0.25,))) == "Normalize(mean=(0.5,), std=(0.25,))"


@pytest.mark.parametrize("moments", [((0.5,), (0.0,)), ((0.5,), (0.5, 0.5)), ((), ()), ((0.5,), (float("nan"),))])
def test_bad_moments_are_quoted(moments: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"`mean` and `std` to have a number for each channel.* but got \("):
        Normalize(*moments)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(3, 8, 8), r"\[n, 3, height, width\], but got \[3, 8, 8\]"),
        (torch.zeros(2, 1, 8, 8), r"but got \[2, 1, 8, 8\]"),
        (torch.zeros(2, 3, 8, 8, dtype=torch.int64), r"but got torch.int64"),
    ],
)
def test_other_inputs_are_refused(images: torch.Tensor, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Normalize(*IMAGENET)(images)
