"""A multilayer perceptron."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks.size_checks import check_size

__all__ = ["MLP"]


class MLP(nn.Module):
    """Fully connected layers with ReLU between them, for inputs of any shape.

    Args:
        in_features: how many numbers an example has; an input ``[n, ...]`` is flattened to ``[n, in_features]``.
        hidden: the width of each hidden layer; an empty sequence gives logistic regression.
        classes: the number of classes, at least 2.

    Examples:
        >>> import torch
        >>> MLP(28 * 28, [64, 32], classes=10)(torch.zeros(5, 1, 28, 28)).shape
        torch.Size([5, 10])
    """

    def __init__(self, in_features: int, hidden: Sequence[int], classes: int) -> None:
        super().__init__()
        if isinstance(hidden, str) or not isinstance(hidden, Sequence):
            raise InvalidArgumentError(
                f"Expected `hidden` to be a sequence of widths, but got {hidden!r}. For one layer, pass [{hidden!r}]."
            )
        self.in_features = check_size("in_features", in_features)
        widths = [in_features, *(check_size(f"hidden[{i}]", width) for i, width in enumerate(hidden))]
        layers: list[nn.Module] = []
        for width, following in pairwise(widths):
            layers += [nn.Linear(width, following), nn.ReLU()]
        layers.append(nn.Linear(widths[-1], check_size("classes", classes, 2)))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of inputs ``[n, ...]``."""
        x = x.flatten(1)
        if x.shape[1] != self.in_features:
            raise InvalidArgumentError(
                f"Expected examples of {self.in_features} numbers each, as in `in_features`, but got {x.shape[1]}."
            )
        logits: Tensor = self.layers(x)
        return logits
