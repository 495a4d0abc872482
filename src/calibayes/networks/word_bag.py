"""A network for texts that looks at which words there are, not at their order."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks.size_checks import check_size

__all__ = ["WordBag"]


class WordBag(nn.Module):
    """A vector for each word, their weighted sum, ReLU, and the logits: small, and hard to beat on texts of a few pages.

    The vectors of a text's words are added with weights (how rare each word is, say) whose squares sum to one. Give each word
    of a text once, unless it should count more. A text without a known word is a vector of zeros.

    Args:
        vocabulary: the number of word indices, with 0, which is padding and counts nothing.
        classes: the number of classes, at least 2.
        dim: the length of a word's vector.
        weights: how much each word index counts, ``[vocabulary]``; all the same by default. They are not trained.

    Examples:
        >>> WordBag(5000, classes=20)(torch.tensor([[0, 7, 7, 12], [0, 0, 0, 0]])).shape
        torch.Size([2, 20])
    """

    weights: Tensor

    def __init__(self, vocabulary: int, classes: int, *, dim: int = 64, weights: Tensor | None = None) -> None:
        super().__init__()
        check_size("vocabulary", vocabulary, 2)
        check_size("classes", classes, 2)
        if weights is not None and list(weights.shape) != [vocabulary]:
            raise InvalidArgumentError(f"Expected `weights` of shape [{vocabulary}], but got {list(weights.shape)}.")
        self.embedding = nn.Embedding(vocabulary, check_size("dim", dim))
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.classifier = nn.Sequential(nn.ReLU(), nn.Linear(dim, classes))
        self.register_buffer("weights", torch.ones(vocabulary) if weights is None else weights.detach().float().clone())

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of word indices ``[n, length]``."""
        if tokens.dim() != 2:
            raise InvalidArgumentError(f"Expected word indices of shape [n, length], but got {list(tokens.shape)}.")
        counts = self.weights[tokens] * (tokens != 0)
        counts = counts / counts.square().sum(-1, keepdim=True).sqrt().clamp_min(1e-12)
        logits: Tensor = self.classifier(torch.einsum("nl,nld->nd", counts, self.embedding(tokens)))
        return logits
