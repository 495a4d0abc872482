"""Residual networks for 32×32 images, of He et al., "Deep Residual Learning for Image Recognition", section 4.2."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks.residual import ResidualBlock, convolution, stage
from calibayes.networks.size_checks import check_size

__all__ = ["ResNetCIFAR", "resnet20"]


def resnet20(classes: int = 10) -> ResNetCIFAR:
    """The residual network of 20 layers and 0.27 million weights for 32×32 colour images.

    Its parameters have the names of weights published for it, which `load_weights` reads. On a CPU it is faster with images in
    the memory format ``torch.channels_last``, which `fit` and `predict` keep.

    Examples:
        >>> import torch
        >>> net = resnet20().eval()
        >>> net(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
        >>> sum(weight.numel() for weight in net.parameters())
        269722
    """
    return ResNetCIFAR(blocks=3, classes=classes)


class ResNetCIFAR(nn.Module):
    """A residual network of ``6 · blocks + 2`` layers for 32×32 colour images: three stages of 16, 32 and 64 channels.

    Args:
        blocks: residual blocks in each stage; 3 gives ResNet-20, 9 gives ResNet-56.
        classes: the number of classes, at least 2.

    Examples:
        >>> import torch
        >>> ResNetCIFAR(blocks=1, classes=5).eval()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 5])
    """

    def __init__(self, blocks: int, classes: int = 10) -> None:
        super().__init__()
        check_size("blocks", blocks)
        check_size("classes", classes, 2)
        self.conv1 = convolution(3, 16)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = stage(_Block, 16, 16, blocks, stride=1)
        self.layer2 = stage(_Block, 16, 32, blocks, stride=2)
        self.layer3 = stage(_Block, 32, 64, blocks, stride=2)
        self.linear = nn.Linear(64, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of images ``[n, 3, height, width]``."""
        if x.dim() != 4 or x.shape[1] != 3:
            raise InvalidArgumentError(f"Expected images of shape [n, 3, 32, 32], but got {list(x.shape)}.")
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        logits: Tensor = self.linear(x.mean((-2, -1)))
        return logits


class _Block(ResidualBlock):
    """A block whose shortcut has no parameters (option A)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__(inputs, outputs, stride)
        self.stride = stride
        self.padding = outputs - inputs

    def shortcut(self, x: Tensor) -> Tensor:
        """The input itself; where the shape changes, every other pixel of it, with channels of zeros on both sides."""
        if self.stride == 1 and self.padding == 0:
            return x
        before = self.padding // 2
        return F.pad(x[..., :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.padding - before))
