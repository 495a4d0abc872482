"""The first layer of networks for texts: how much each word of a text counts."""

from __future__ import annotations

import math
from typing import Any, Self, final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks.size_checks import check_size

__all__ = ["WordWeights", "weighted_sum"]


@final
class WordWeights(nn.Module):
    r"""The TF-IDF weights of a text's words: rare words count more, and the squares of a text's weights sum to one.

    A word that $n_w$ of $n$ training texts have counts $1 + \log\frac{1 + n}{1 + n_w}$, as in scikit-learn's `TfidfVectorizer`
    with ``binary=True``. Texts are word indices ``[n, length]``, each word once; 0 is padding. Nothing here is trained.

    Args:
        words: the number of word indices, with 0.

    Examples:
        >>> WordWeights(4).fit(torch.tensor([[1, 2], [0, 1], [0, 1]]))(torch.tensor([[0, 1, 2]]))
        tensor([[0.0000, 0.5085, 0.8610]])
    """

    rarity: Tensor

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = check_size("words", words, 2)
        self.register_buffer("rarity", torch.ones(words))

    def fit(self, tokens: Tensor) -> Self:
        """Learn how rare each word is from training texts."""
        ordered = self._checked(tokens).sort(dim=1).values
        new = F.pad(ordered[:, 1:] != ordered[:, :-1], (1, 0), value=True)  # a repeated word counts once
        texts_with = torch.bincount(ordered[new], minlength=self.words)
        self.rarity.copy_(1 + math.log(1 + len(tokens)) - texts_with.float().log1p())
        return self

    def forward(self, tokens: Tensor) -> Tensor:
        """Weights ``[n, length]`` of word indices ``[n, length]``; those of padding are 0."""
        weights = self.rarity[self._checked(tokens)] * (tokens != 0)
        return weights / weights.square().sum(-1, keepdim=True).sqrt().clamp_min(1e-12)

    def matrix(self, tokens: Tensor) -> Any:
        """The weights of texts as a sparse matrix of SciPy, ``[n, words]``: what scikit-learn takes."""
        from scipy.sparse import csr_matrix

        known = tokens != 0
        starts = F.pad(known.sum(1).cumsum(0), (1, 0))
        parts = (self(tokens)[known].numpy(), tokens[known].numpy().astype(np.int32), starts.numpy().astype(np.int32))
        return csr_matrix(parts, shape=(len(tokens), self.words))

    def _checked(self, tokens: Tensor) -> Tensor:
        if tokens.dim() != 2:
            raise InvalidArgumentError(f"Expected word indices of shape [n, length], but got {list(tokens.shape)}.")
        return tokens


def weighted_sum(tokens: Tensor, weights: Tensor, vectors: Tensor) -> Tensor:
    """Add the vectors ``[words, dim]`` of the words of each text ``[n, length]`` with weights; padding costs no time.

    Examples:
        >>> weighted_sum(torch.tensor([[0, 1]]), torch.tensor([[0.0, 0.5]]), torch.tensor([[9.0, 9.0], [4.0, 2.0]]))
        tensor([[2., 1.]])
    """
    known = tokens != 0
    if torch.compiler.is_exporting():  # the number of words is not known, and other runtimes have no sums of bags
        return ((weights * known).to(vectors.dtype).unsqueeze(1) @ vectors[tokens]).squeeze(1)
    counts = known.sum(1)
    return F.embedding_bag(
        tokens[known], vectors, counts.cumsum(0) - counts, mode="sum", per_sample_weights=weights[known].to(vectors.dtype)
    )
