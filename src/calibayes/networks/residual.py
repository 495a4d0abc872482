"""The convolutions, blocks and stages that the residual networks of He et al. share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["ResidualBlock", "convolution", "stage"]


class ResidualBlock(nn.Module, ABC):
    """Two 3×3 convolutions from ``inputs`` to ``outputs`` channels, with a shortcut around them that subclasses define.

    A stride of 2 halves the resolution.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = convolution(inputs, outputs, stride)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = convolution(outputs, outputs)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, at half the resolution if its stride is 2."""
        residual = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(residual + self.shortcut(x))

    @abstractmethod
    def shortcut(self, x: Tensor) -> Tensor:
        """The input, in the shape of the output."""


class _Convolution(nn.Conv2d):
    """A 3×3 convolution with padding 1 and without bias: a norm follows.

    On a CPU, maps of at most 2×2 are multiplied with a matrix instead: PyTorch's backward pass through a convolution whose
    taps mostly meet padding takes many times as long. The results agree to rounding.
    """

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__(inputs, outputs, 3, stride, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Maps ``[n, outputs, height, width]``, divided by the stride."""
        height, width = x.shape[-2:]
        if max(height, width) > 2 or x.device.type != "cpu":
            return super().forward(x)
        size = [-(-side // step) for side, step in zip((height, width), self.stride, strict=True)]
        rows, columns = ([1 - step * k for k in range(n)] for n, step in zip(size, self.stride, strict=True))
        taps = [self.weight[:, :, row : row + height, column : column + width] for row in rows for column in columns]
        matrix = torch.stack(taps, 1).flatten(0, 1).flatten(1)
        maps: Tensor = F.linear(x.flatten(1), matrix).unflatten(1, (self.out_channels, *size))
        return maps


convolution = _Convolution


def stage(block: Callable[[int, int, int], nn.Module], inputs: int, outputs: int, blocks: int, stride: int) -> nn.Sequential:
    """``blocks`` residual blocks, of which the first changes channels and resolution."""
    return nn.Sequential(block(inputs, outputs, stride), *(block(outputs, outputs, 1) for _ in range(blocks - 1)))
