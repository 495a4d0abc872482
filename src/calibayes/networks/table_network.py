"""A network for tables: many small networks in one, which share most of their weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks.size_checks import check_size

__all__ = ["HeadedMLP"]


@final
class HeadedMLP(nn.Module):
    r"""A perceptron with several heads that share its matrices (TabM, Gorishniy et al. 2025, https://arxiv.org/abs/2410.24210).

    Each head has scales of its own for the inputs and for the outputs of every hidden layer, biases and a last layer. In
    training every example goes through one head, so a step costs what that of one network does. In evaluation mode the output
    is the logarithm of the heads' mean probabilities.

    Args:
        in_features: how many numbers an example has.
        hidden: the width of each hidden layer.
        classes: the number of classes, at least 2.
        heads: how many heads; 1 for a plain perceptron.
        dropout: the probability that a hidden unit is dropped in training.

    Examples:
        >>> net = HeadedMLP(10, [32, 32], classes=3, heads=4)
        >>> net(torch.zeros(6, 10)).shape, bool(torch.allclose(net.eval()(torch.zeros(6, 10)).exp().sum(1), torch.ones(6)))
        (torch.Size([6, 3]), True)
    """

    def __init__(self, in_features: int, hidden: Sequence[int], classes: int, *, heads: int = 8, dropout: float = 0.1) -> None:
        super().__init__()
        if not hidden:
            raise InvalidArgumentError("Expected `hidden` to be at least one width, but got none.")
        self.in_features, self.heads = check_size("in_features", in_features), check_size("heads", heads)
        self.hidden, self.classes = list(hidden), check_size("classes", classes, 2)
        widths = [in_features, *(check_size(f"hidden[{i}]", width) for i, width in enumerate(hidden))]
        self.layers = nn.Sequential(*(_SharedLinear(before, after, heads) for before, after in pairwise(widths)))
        self.input_scale = nn.Parameter(torch.ones(heads, in_features))
        self.last = nn.Parameter(torch.zeros(heads, widths[-1], classes))
        self.last_bias = nn.Parameter(torch.zeros(heads, classes))
        self.dropout = nn.Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial weights of everything but the shared layers, which draw their own."""
        if self.heads > 1:
            nn.init.normal_(self.input_scale, mean=1.0, std=0.5)
        bound = 1 / math.sqrt(self.last.shape[1])
        nn.init.uniform_(self.last, -bound, bound)
        nn.init.zeros_(self.last_bias)

    def forward(self, x: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of inputs ``[n, in_features]``."""
        x = x.flatten(1)
        if self.training:
            return self._one_head_each(x)
        logits = torch.stack([self._head(x, head) for head in range(self.heads)])
        return F.log_softmax(logits, -1).logsumexp(0) - math.log(self.heads)

    def _head(self, x: Tensor, head: int) -> Tensor:
        x = x * self.input_scale[head]
        for layer in self.layers:
            x = F.relu(layer(x, head))
        return x @ self.last[head] + self.last_bias[head]

    def _one_head_each(self, x: Tensor) -> Tensor:
        """Logits of examples that go through one head each, in turn; the batch is filled up to a multiple of the heads."""
        rows = len(x)
        turns = -(-rows // self.heads)
        x = F.pad(x, (0, 0, 0, turns * self.heads - rows)).view(turns, self.heads, -1) * self.input_scale
        for layer in self.layers:
            x = self.dropout(F.relu(layer(x)))
        logits = torch.einsum("thw,hwk->thk", x, self.last) + self.last_bias
        return logits.flatten(0, 1)[:rows]


class _SharedLinear(nn.Module):
    """A matrix that all heads share, with scales and biases of each head's own."""

    def __init__(self, inputs: int, outputs: int, heads: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.scale, self.bias = nn.Parameter(torch.empty(heads, outputs)), nn.Parameter(torch.empty(heads, outputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial weights, as `torch.nn.Linear` does."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)
        nn.init.ones_(self.scale)

    def forward(self, x: Tensor, head: int | slice = slice(None)) -> Tensor:
        """Outputs for one head, or for inputs ``[..., heads, inputs]`` for all of them."""
        return torch.addcmul(self.bias[head], F.linear(x, self.weight), self.scale[head])
