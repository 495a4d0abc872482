"""Residual networks for photographs, of He et al., "Deep Residual Learning for Image Recognition", section 4.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks.residual import ResidualBlock, convolution, stage
from calibayes.networks.size_checks import check_size

__all__ = ["ResNet", "resnet18"]

_CHANNELS = (64, 128, 256, 512)


def resnet18(classes: int = 10, stem: Literal["imagenet", "cifar"] = "imagenet") -> ResNet:
    """The residual network of 18 layers and 11.2 million weights for colour images; ``stem`` as in `ResNet`.

    Its parameters have torchvision's names and shapes, so `load_weights` reads the weights published for that. On a CPU it is
    faster with images in the memory format ``torch.channels_last``, which `fit` and `predict` keep.

    Examples:
        >>> import torch
        >>> net = resnet18(stem="cifar").eval()
        >>> net(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
        >>> sum(weight.numel() for weight in resnet18(classes=1000).parameters())
        11689512
    """
    return ResNet((2, 2, 2, 2), classes, stem)


class ResNet(nn.Module):
    """A residual network of four stages of 64, 128, 256 and 512 channels, for colour images of any size.

    Args:
        blocks: residual blocks in each of the four stages; ``(2, 2, 2, 2)`` gives ResNet-18, ``(3, 4, 6, 3)`` ResNet-34.
        classes: the number of classes, at least 2.
        stem: ``"imagenet"`` starts with a 7×7 convolution of stride 2 and max-pooling, which leave 56×56 of 224×224
            pixels, but only 8×8 of 32×32; ``"cifar"`` starts with a 3×3 convolution and keeps the resolution of small
            images, for about 16 times the computation. Published weights are for ``"imagenet"``.

    Examples:
        >>> import torch
        >>> ResNet((1, 1, 1, 1), classes=5).eval()(torch.zeros(2, 3, 64, 48)).shape
        torch.Size([2, 5])
    """

    def __init__(self, blocks: Sequence[int], classes: int = 10, stem: Literal["imagenet", "cifar"] = "imagenet") -> None:
        super().__init__()
        if isinstance(blocks, str) or not isinstance(blocks, Sequence) or len(blocks) != len(_CHANNELS):
            raise InvalidArgumentError(f"Expected `blocks` to be four numbers, one for each stage, but got {blocks!r}.")
        if stem not in ("imagenet", "cifar"):
            raise InvalidArgumentError(f"Expected `stem` to be 'imagenet' or 'cifar', but got {stem!r}.")
        for k, number in enumerate(blocks):
            check_size(f"blocks[{k}]", number)
        check_size("classes", classes, 2)
        first, second, third, fourth = _CHANNELS
        large = stem == "imagenet"
        self.conv1 = nn.Conv2d(3, first, 7, 2, padding=3, bias=False) if large else convolution(3, first)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1) if large else nn.Identity()
        self.bn1 = nn.BatchNorm2d(first)
        self.layer1 = stage(_Block, first, first, blocks[0], stride=1)
        self.layer2 = stage(_Block, first, second, blocks[1], stride=2)
        self.layer3 = stage(_Block, second, third, blocks[2], stride=2)
        self.layer4 = stage(_Block, third, fourth, blocks[3], stride=2)
        self.fc = nn.Linear(fourth, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of images ``[n, 3, height, width]``."""
        if x.dim() != 4 or x.shape[1] != 3:
            raise InvalidArgumentError(f"Expected images of shape [n, 3, height, width], but got {list(x.shape)}.")
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(x.mean((-2, -1)))
        return logits


class _Block(ResidualBlock):
    """A block whose shortcut is a 1×1 convolution where the shape changes (option B)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__(inputs, outputs, stride)
        same = stride == 1 and inputs == outputs
        projection = [] if same else [nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)]
        self.downsample = nn.Sequential(*projection)

    def shortcut(self, x: Tensor) -> Tensor:
        """The input itself, or its projection."""
        projected: Tensor = self.downsample(x)
        return projected
