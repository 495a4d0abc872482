"""A first layer that takes images as they are stored."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError

__all__ = ["CIFAR10", "IMAGENET", "Normalize"]

Moments = tuple[tuple[float, ...], tuple[float, ...]]

IMAGENET: Moments = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and standard deviation of ImageNet's red, green and blue: what most published networks expect."""

CIFAR10: Moments = ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
"""Mean and standard deviation of the red, green and blue of CIFAR-10's 50,000 training images."""


class Normalize(nn.Module):
    r"""Scale bytes to $[0, 1]$, then subtract a mean and divide by a standard deviation, channel by channel.

    As the first layer of a network it lets images stay bytes until they are needed, which takes a quarter of the memory.

    Args:
        mean: a number for each channel, on the scale from 0 to 1.
        std: a positive number for each channel, on the same scale.

    Examples:
        >>> net = nn.Sequential(Normalize(*IMAGENET), nn.Flatten(), nn.Linear(3 * 32 * 32, 10))
        >>> net(torch.full((2, 3, 32, 32), 255, dtype=torch.uint8)).shape
        torch.Size([2, 10])
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        if not mean or len(mean) != len(std) or not all(0 < value < float("inf") for value in std):
            raise InvalidArgumentError(
                "Expected `mean` and `std` to have a number for each channel, and those of `std` to be positive and finite, "
                f"but got {tuple(mean)} and {tuple(std)}."
            )
        self._settings = f"mean={tuple(mean)}, std={tuple(std)}"
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Images ``[n, channels, height, width]``: bytes, or numbers that are already on the scale from 0 to 1."""
        channels = len(self.mean)
        if images.dim() != 4 or images.shape[1] != channels:
            raise InvalidArgumentError(f"Expected images [n, {channels}, height, width], but got {list(images.shape)}.")
        if not images.is_floating_point():
            if images.dtype != torch.uint8:
                raise InvalidArgumentError(f"Expected images of bytes (uint8) or numbers from 0 to 1, but got {images.dtype}.")
            # Convolutions are faster where the colours of a pixel lie side by side.
            images = images.to(self.mean.dtype, memory_format=torch.channels_last) / 255
        return (images - self.mean) / self.std

    def extra_repr(self) -> str:
        """Return what `print` shows."""
        return self._settings
