"""A small convolutional network for small grey images."""

from __future__ import annotations

from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks.sizes import check_size

__all__ = ["SmallCNN"]


class SmallCNN(nn.Module):
    """A light network for 28×28 grey images that trains in seconds on a CPU.

    Two 3×3 convolutions (16 and 32 channels), each followed by ReLU and 2×2 max-pooling, then a hidden layer of 64.
    It has neither dropout nor batch normalisation, so what it computes depends on its weights alone.

    Args:
        classes: the number of classes, at least 2.

    Examples:
        >>> import torch
        >>> SmallCNN()(torch.zeros(4, 1, 28, 28)).shape
        torch.Size([4, 10])
    """

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        check_size("classes", classes, 2)
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Linear(32 * 5 * 5, 64),
            nn.ReLU(),
            nn.Linear(64, classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of images ``[n, 1, 28, 28]``."""
        if x.shape[-3:] != (1, 28, 28):
            raise InvalidArgumentError(f"Expected images of shape [n, 1, 28, 28], but got {list(x.shape)}.")
        logits: Tensor = self.classifier(self.features(x).flatten(1))
        return logits
