"""A convolutional network for texts."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks.size_checks import check_size
from calibayes.networks.word_convolution import WordConvolution

__all__ = ["TextCNN"]

_WIDTH = 5


class TextCNN(nn.Module):
    """A convolutional network with global pooling for texts given as word indices, as for the paper's 20 Newsgroups.

    Word vectors, three convolutions of width 5 with ReLU (max-pooling after the first two), one global pooling over the
    text, a hidden layer, and the logits.

    Args:
        embeddings: word vectors ``[vocabulary, dim]``, which are copied and stay frozen; or just the two sizes
            ``(vocabulary, dim)``, for vectors that are drawn at random and trained.
        classes: the number of classes, at least 2.
        pooling: how a text becomes one vector: ``"max"`` or ``"average"`` over its positions.
        channels: the channels of each convolution.
        hidden: the width of the hidden layer.
        pool: by how much each of the two max-poolings shortens the text. With 5 a text needs at least 149 words, with 4
            at least 100, with 3 at least 61, with 2 at least 32; ``shortest`` has the number. Pad shorter ones.
        padding: the word index that fills up short texts. Positions that see nothing else are then left out of the global
            pooling, and a text of padding alone becomes a vector of zeros. By default all positions count, so that the
            average of a short text is drawn towards what the network makes of padding.

    Examples:
        >>> TextCNN((5000, 100))(torch.zeros(2, 200, dtype=torch.long)).shape
        torch.Size([2, 20])
        >>> TextCNN((5000, 100), channels=64, pool=3).shortest
        61
    """

    def __init__(
        self,
        embeddings: Tensor | tuple[int, int],
        classes: int = 20,
        pooling: Literal["max", "average"] = "max",
        *,
        channels: int = 128,
        hidden: int = 128,
        pool: int = 5,
        padding: int | None = None,
    ) -> None:
        super().__init__()
        if pooling not in ("max", "average"):
            raise InvalidArgumentError(f"Expected `pooling` to be 'max' or 'average', but got {pooling!r}.")
        check_size("classes", classes, 2)
        check_size("channels", channels)
        check_size("hidden", hidden)
        self.pooling = pooling
        self.pool = check_size("pool", pool)
        self.embedding = _embedding(embeddings)
        if padding is not None and check_size("padding", padding, 0) >= self.embedding.num_embeddings:
            raise InvalidArgumentError(
                f"Expected `padding` to be a word index below {self.embedding.num_embeddings}, the size of the vocabulary, "
                f"but got {padding!r}."
            )
        self.padding = padding
        self.shortest = self.shortest_for(pool)
        self.features = nn.Sequential(
            WordConvolution(self.embedding.embedding_dim, channels, _WIDTH),
            _MaxPool((1, pool)),
            nn.ReLU(),  # after the pooling it is the same, and has less to do
            _Convolution(channels, channels, _WIDTH),
            _MaxPool((1, pool)),
            nn.ReLU(),
            _Convolution(channels, channels, _WIDTH),
            nn.ReLU(),
        )
        self.classifier = nn.Sequential(nn.Linear(channels, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    @staticmethod
    def shortest_for(pool: int) -> int:
        """The least number of words for a ``pool``, which `shortest` has."""
        # Backwards from one position at the end: convolution, pool and convolution, pool and convolution.
        return ((_WIDTH * pool + _WIDTH - 1) * pool) + _WIDTH - 1

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of word indices ``[n, length]``."""
        if tokens.dim() != 2 or tokens.shape[1] < self.shortest:
            raise InvalidArgumentError(
                f"Expected word indices of shape [n, length] with a length of at least {self.shortest}, so that something "
                f"is left after the last convolution, but got {list(tokens.shape)}. Pad the texts to a longer length, "
                f"or make the network with a smaller `pool` than {self.pool}."
            )
        maps = self.features[1:](self.features[0](tokens, self.embedding))
        logits: Tensor = self.classifier(self._pooled(maps, tokens))
        return logits

    def _pooled(self, maps: Tensor, tokens: Tensor) -> Tensor:
        """One vector per text ``[n, channels]`` of ``maps [n, channels, positions]``, which are not negative."""
        if self.padding is None:
            return maps.amax(-1) if self.pooling == "max" else maps.mean(-1)
        # A position sees `shortest` words, and the next one starts pool² further on.
        words = (tokens != self.padding).to(maps.dtype)
        counts = F.max_pool1d(words.unsqueeze(1), self.shortest, self.pool**2)
        maps = maps * counts
        return maps.amax(-1) if self.pooling == "max" else maps.sum(-1) / counts.sum(-1).clamp(min=1)


# The maps [n, channels, length] lie in memory position after position, as word vectors do. The functions for images know
# this layout (it is their "channels last"); those for sequences would copy it away.


class _Convolution(nn.Conv1d):
    def forward(self, maps: Tensor) -> Tensor:
        return F.conv2d(maps.unsqueeze(2), self.weight.unsqueeze(2), self.bias).squeeze(2)


class _MaxPool(nn.MaxPool2d):
    def forward(self, maps: Tensor) -> Tensor:
        pooled: Tensor = super().forward(maps.unsqueeze(2)).squeeze(2)
        return pooled


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
