"""A small convolutional network for small images."""

from __future__ import annotations

from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks.size_checks import check_size

__all__ = ["SmallCNN"]


class SmallCNN(nn.Module):
    """A light network for small images, by default grey ones of 28×28, that trains in seconds on a CPU.

    Two 3×3 convolutions (16 and 32 channels), each followed by ReLU and 2×2 max-pooling, then a hidden layer of 64.
    It has neither dropout nor batch normalisation, so what it computes depends on its weights alone.

    Args:
        classes: the number of classes, at least 2.
        channels: 1 for grey images, 3 for colour.
        size: the height and width, at least 10.

    Examples:
        >>> import torch
        >>> SmallCNN()(torch.zeros(4, 1, 28, 28)).shape
        torch.Size([4, 10])
        >>> SmallCNN(classes=5, channels=3, size=32)(torch.zeros(4, 3, 32, 32)).shape
        torch.Size([4, 5])
    """

    def __init__(self, classes: int = 10, *, channels: int = 1, size: int = 28) -> None:
        super().__init__()
        check_size("classes", classes, 2)
        self.channels, self.size = check_size("channels", channels), check_size("size", size, 10)
        left = ((size - 2) // 2 - 2) // 2  # of the height and width, after both convolutions and poolings
        first, second = nn.Conv2d(channels, 16, 3), nn.Conv2d(16, 32, 3)
        self.features = nn.Sequential(first, nn.ReLU(), nn.MaxPool2d(2), second, nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(32 * left * left, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, x: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of images ``[n, channels, size, size]``."""
        wanted = [self.channels, self.size, self.size]
        if list(x.shape[-3:]) != wanted:
            shape = ", ".join(["n", *map(str, wanted)])
            raise InvalidArgumentError(f"Expected images of shape [{shape}], but got {list(x.shape)}.")
        logits: Tensor = self.classifier(self.features(x).flatten(1))
        return logits
