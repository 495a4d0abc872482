"""Texts as methods take them: TF-IDF weights for linear models, word vectors for networks."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from calibayes.crossfit.representation import Representation
from calibayes.networks.text_network import TextNetwork
from calibayes.networks.word_bag import WordBag
from calibayes.networks.word_weights import WordWeights

__all__ = ["text_representation"]

# Inverse strengths of the penalty: TF-IDF weights are small, so it is weak. With few iterations the path is not followed to
# the end, which costs nothing, as held-out texts decide.
_LINEAR = {"penalties": (1.0, 10.0, 100.0, 1000.0, 3000.0, 10000.0), "start": 100.0, "iterations": 25}
_MANY_CLASSES = 50
_PLAIN_DIM = 64


def text_representation(tokens: Tensor, words: int, classes: int) -> Representation:
    """Return texts as methods take them.

    Args:
        tokens: word indices ``[n, length]``, each word of a text once, 0 being padding; those that the rarity of words is taken
            from.
        words: the number of word indices, with 0.
        classes: how many there are.
    """
    weights = WordWeights(words).fit(tokens)
    return Representation(
        first_layer=weights,
        network=partial(_text_network, weights, classes),
        settings={
            "logistic-regression": _LINEAR,
            "ema": {"learning_rate": 2e-3, "weight_decay": 1e-2, "ema": 0.98},
        },
        fit={"patience": 6, "batch_size": _batch_size(len(tokens))},
    )


def _text_network(weights: WordWeights, classes: int, method: str) -> nn.Module:
    """A network with dropout where weights are averaged; otherwise a plain one, whose weights any method can draw."""
    if method == "ema":
        return TextNetwork(weights, classes, dim=256 if classes > _MANY_CLASSES else 128)
    return WordBag(weights.words, classes, dim=_PLAIN_DIM, weights=weights.rarity)


def _batch_size(texts: int) -> int:
    """Few texts a step, as most words are in few of them."""
    return next((size for most, size in ((1000, 32), (10_000, 64), (40_000, 128)) if texts < most), 256)
