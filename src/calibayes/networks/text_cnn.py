"""A convolutional network for texts."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks.sizes import check_size

__all__ = ["TextCNN"]

_CHANNELS = 128
_WIDTH = 5
_POOL = 5
# Backwards from one position at the end: convolution, pool and convolution, pool and convolution.
_SHORTEST = ((_WIDTH * _POOL + _WIDTH - 1) * _POOL) + _WIDTH - 1


class TextCNN(nn.Module):
    """A convolutional network with global pooling for texts given as word indices, as for the paper's 20 Newsgroups.

    Word vectors, three convolutions of 128 channels and width 5 with ReLU (max-pooling by 5 after the first two), one
    global pooling over the text, a hidden layer of 128, and the logits.

    Args:
        embeddings: word vectors ``[vocabulary, dim]``, which are copied and stay frozen; or just the two sizes
            ``(vocabulary, dim)``, for vectors that are drawn at random and trained.
        classes: the number of classes, at least 2.
        pooling: how a text becomes one vector: ``"max"`` or ``"average"`` over its positions.

    Example:
        >>> TextCNN((5000, 100))(torch.zeros(2, 200, dtype=torch.long)).shape
        torch.Size([2, 20])
    """

    def __init__(
        self,
        embeddings: Tensor | tuple[int, int],
        classes: int = 20,
        pooling: Literal["max", "average"] = "max",
    ) -> None:
        super().__init__()
        if pooling not in ("max", "average"):
            raise InvalidArgumentError(f"Expected `pooling` to be 'max' or 'average', but got {pooling!r}.")
        check_size("classes", classes, 2)
        self.pooling = pooling
        self.embedding = _embedding(embeddings)
        self.features = nn.Sequential(
            nn.Conv1d(self.embedding.embedding_dim, _CHANNELS, _WIDTH),
            nn.ReLU(),
            nn.MaxPool1d(_POOL),
            nn.Conv1d(_CHANNELS, _CHANNELS, _WIDTH),
            nn.ReLU(),
            nn.MaxPool1d(_POOL),
            nn.Conv1d(_CHANNELS, _CHANNELS, _WIDTH),
            nn.ReLU(),
        )
        self.classifier = nn.Sequential(
            nn.Linear(_CHANNELS, _CHANNELS),
            nn.ReLU(),
            nn.Linear(_CHANNELS, classes),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of word indices ``[n, length]``."""
        if tokens.dim() != 2 or tokens.shape[1] < _SHORTEST:
            raise InvalidArgumentError(
                f"Expected word indices of shape [n, length] with a length of at least {_SHORTEST}, so that something "
                f"is left after the last convolution, but got {list(tokens.shape)}. Pad the texts to a longer length."
            )
        maps = self.features(self.embedding(tokens).transpose(1, 2))
        pooled = maps.amax(-1) if self.pooling == "max" else maps.mean(-1)
        logits: Tensor = self.classifier(pooled)
        return logits


def _embedding(embeddings: Tensor | tuple[int, int]) -> nn.Embedding:
    if isinstance(embeddings, Tensor):
        if embeddings.dim() != 2 or not embeddings.is_floating_point() or embeddings.numel() == 0:
            raise InvalidArgumentError(
                "Expected `embeddings` to be word vectors [vocabulary, dim] of a floating-point type, "
                f"but got {list(embeddings.shape)} of {embeddings.dtype}."
            )
        vectors = embeddings.detach().to(torch.get_default_dtype(), copy=True)  # they are often stored as float16
        frozen: nn.Embedding = nn.Embedding.from_pretrained(vectors, freeze=True)
        return frozen
    if not isinstance(embeddings, tuple | list) or len(embeddings) != 2:
        raise InvalidArgumentError(
            f"Expected `embeddings` to be a tensor of word vectors or a pair (vocabulary, dim), but got {embeddings!r}."
        )
    vocabulary, dim = embeddings
    return nn.Embedding(check_size("vocabulary", vocabulary), check_size("dim", dim))
