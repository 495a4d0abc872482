"""Texts as sequences of word indices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from calibayes.checks import positive_integer
from calibayes.errors import InvalidArgumentError

__all__ = ["frequent_words", "sequences", "word_places", "words"]

# All printable ASCII characters but letters, digits and the apostrophe, as Keras's Tokenizer filters them.
_SEPARATORS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'
_TABLE = bytes(ord(" " if chr(code) in _SEPARATORS else chr(code).lower()) for code in range(256))


def words(text: bytes) -> list[str]:
    """Return the words of a latin-1 text: in lower case, split at white space and at all punctuation but the apostrophe.

    Examples:
        >>> words(b"Don't PANIC: it's only e-mail.")
        ["don't", 'panic', "it's", 'only', 'e', 'mail']
    """
    return text.translate(_TABLE).decode("latin-1").split()


def frequent_words(texts: Iterable[Sequence[str]], count: int) -> tuple[str, ...]:
    """Return the ``count`` most frequent words, most frequent first; equally frequent ones in alphabetical order.

    Examples:
        >>> frequent_words([["b", "a"], ["c", "a", "b"]], 2)
        ('a', 'b')
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    largest = sorted(counts.values(), reverse=True)[: positive_integer("count", count)]
    # Most words are rare: they need not be sorted.
    ordered = sorted((-number, word) for word, number in counts.items() if number >= largest[-1])
    return tuple(word for _, word in ordered[:count])


def word_places(vocabulary: Sequence[str]) -> dict[str, int]:
    """Return the index of each word, counted from 1."""
    return {word: index for index, word in enumerate(vocabulary, start=1)}


def sequences(
    texts: Sequence[Sequence[str]],
    vocabulary: Sequence[str] | Mapping[str, int],
    length: int,
    keep: Literal["start", "end"] = "end",
) -> Tensor:
    """Return word indices ``[n, length]`` (int64), counted from 1; shorter texts are padded with zeros at their start.

    Words outside the vocabulary, a list or what `word_places` made of it, are left out. Of longer texts the ``"start"`` or
    the ``"end"`` is kept.

    Examples:
        >>> sequences([["to", "be", "or", "not"], ["be"]], ("be", "not", "to"), length=2)
        tensor([[1, 2],
                [0, 1]])
    """
    positive_integer("length", length)
    if keep not in ("start", "end"):
        raise InvalidArgumentError(f"Expected `keep` to be 'start' or 'end', but got {keep!r}.")
    places = vocabulary if isinstance(vocabulary, Mapping) else word_places(vocabulary)
    indices = np.zeros((len(texts), length), dtype=np.int64)
    for row, text in zip(indices, texts, strict=True):
        known = list(filter(None, map(places.get, text)))
        kept = known[-length:] if keep == "end" else known[:length]
        if kept:
            row[-len(kept) :] = kept
    return torch.from_numpy(indices)
