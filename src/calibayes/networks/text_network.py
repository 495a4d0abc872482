"""Networks for texts of any length that see which words there are, not their order, and are quick to train."""

from __future__ import annotations

import copy
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from calibayes.networks.input_dropout import InputDropout
from calibayes.networks.size_checks import check_size
from calibayes.networks.word_weights import WordWeights, weighted_sum

__all__ = ["TextLinear", "TextNetwork"]

_INITIAL_STD = 0.05


@final
class TextNetwork(nn.Module):
    """A vector for each word, their sum by `WordWeights`, ReLU, dropout, and the logits.

    In training, words are hidden at random. The others keep their weights, so that the network also learns to be less sure of a
    text of which it knows little.

    Args:
        weights: how much words count, fitted already; a copy is kept.
        classes: the number of classes, at least 2.
        dim: the length of a word's vector.
        word_dropout: the probability that a word of a text is hidden in training.
        dropout: the probability that an element of the sum is dropped in training.

    Examples:
        >>> net = TextNetwork(WordWeights(5000), classes=20)
        >>> net(torch.tensor([[0, 7, 12], [0, 0, 0]])).shape
        torch.Size([2, 20])
    """

    def __init__(
        self, weights: WordWeights, classes: int, *, dim: int = 128, word_dropout: float = 0.15, dropout: float = 0.4
    ) -> None:
        super().__init__()
        self.words, self.classes, self.dim = weights.words, check_size("classes", classes, 2), check_size("dim", dim)
        self.weights = copy.deepcopy(weights)
        self.hidden_words = InputDropout(word_dropout, of="words", replacement=0)
        self.vectors = nn.Parameter(torch.empty(weights.words, dim))
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(dim, classes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial vectors; the last layer draws its own weights."""
        nn.init.normal_(self.vectors, std=_INITIAL_STD)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of word indices ``[n, length]``."""
        summed = weighted_sum(self.hidden_words(tokens), self.weights(tokens), self.vectors)
        logits: Tensor = self.last(self.dropout(F.relu(summed)))
        return logits


@final
class TextLinear(nn.Module):
    """A linear layer on the TF-IDF weights of texts, which are never a dense matrix.

    Args:
        weights: how much words count, fitted already; a copy is kept.
        classes: the number of classes, at least 2.

    Examples:
        >>> TextLinear(WordWeights(5000), classes=20)(torch.tensor([[0, 7, 12], [0, 0, 0]])).shape
        torch.Size([2, 20])
    """

    def __init__(self, weights: WordWeights, classes: int) -> None:
        super().__init__()
        self.words, self.classes = weights.words, check_size("classes", classes, 2)
        self.weights = copy.deepcopy(weights)
        self.coefficients = nn.Parameter(torch.zeros(weights.words, classes))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of word indices ``[n, length]``."""
        return weighted_sum(tokens, self.weights(tokens), self.coefficients) + self.bias
