"""Images as methods take them: pixels for linear models, convolutional networks for the others."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from calibayes.crossfit.representation import Representation
from calibayes.networks import Normalize, SmallCNN, resnet20

__all__ = ["image_representation", "pixel_moments"]

_MOST_LINEAR = 8_000_000  # values of all images together, up to which logistic regression is a matter of seconds
_PENALTIES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
_BLOCK = 4096  # images at once


def image_representation(pixels: Tensor, classes: int, network: Literal["small-cnn", "resnet20"]) -> Representation:
    """Return images as methods take them.

    Args:
        pixels: bytes ``[n, channels, height, width]``; those that the mean and standard deviation are taken from.
        classes: how many there are.
        network: the name of the network.
    """
    normalize = Normalize(*pixel_moments(pixels))
    flat = nn.Sequential(normalize, nn.Flatten()) if pixels.numel() <= _MOST_LINEAR else None
    _, channels, side, _ = pixels.shape
    return Representation(
        first_layer=flat,
        network=partial(_image_network, normalize, network, channels, side, classes),
        settings={
            "logistic-regression": {"penalties": _PENALTIES, "start": 0.003},
            "ema": {"learning_rate": 2e-3, "weight_decay": 1e-2, "ema": 0.99},
        },
        # Photographs gain from shifts and mirror images. Grey images are often centred, or letters and digits, and lose.
        fit={"patience": 6, "augment": channels == 3},
    )


def pixel_moments(pixels: Tensor) -> tuple[list[float], list[float]]:
    """Return the mean and standard deviation of each channel of bytes, on the scale from 0 to 1."""
    total, squares = (torch.zeros(pixels.shape[1], dtype=torch.float64) for _ in range(2))
    for block in pixels.split(_BLOCK):
        values = block.double() / 255
        total += values.sum((0, 2, 3))
        squares += values.square().sum((0, 2, 3))
    count = pixels.numel() / pixels.shape[1]
    mean = total / count
    std = (squares / count - mean.square()).clamp_min(0).sqrt().clamp_min(1e-3)
    return mean.tolist(), std.tolist()


def _image_network(normalize: nn.Module, name: str, channels: int, side: int, classes: int, method: str) -> nn.Module:
    network = SmallCNN(classes, channels=channels, size=side) if name == "small-cnn" else resnet20(classes)
    return nn.Sequential(normalize, network)
