"""Texts with words replaced or left out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np
import torch
from torch import Tensor

from calibayes.checks import integer
from calibayes.data.corrupt.severity import check_severity, known_name
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.randomness import derived_seed
from calibayes.wording import shortened

__all__ = ["TEXT_CORRUPTIONS", "corrupt_texts"]

TEXT_CORRUPTIONS = ("word_replacement", "word_dropping")
"""The names of the corruptions of texts."""

_SHARES = (0.1, 0.2, 0.3, 0.45, 0.6)  # of the words
Word = TypeVar("Word", str, int)


@overload
def corrupt_texts(
    texts: Sequence[Sequence[str]],
    name: str,
    severity: int,
    *,
    seed: int,
    others: Sequence[str] | None = None,
) -> list[list[str]]: ...


@overload
def corrupt_texts(
    texts: Tensor,
    name: str,
    severity: int,
    *,
    seed: int,
    others: Sequence[int] | Tensor | None = None,
    padding: int = 0,
    pad: Literal["start", "end"] = "start",
) -> Tensor: ...


def corrupt_texts(
    texts: Sequence[Sequence[str]] | Tensor,
    name: str,
    severity: int,
    *,
    seed: int,
    others: Any = None,
    padding: int = 0,
    pad: Literal["start", "end"] = "start",
) -> list[list[str]] | Tensor:
    """Replace words of texts by others, or leave words out: 10, 20, 30, 45 or 60 % of them, by severity.

    Which words, and what replaces them, depends on the seed, the name and the text itself, not on the other texts. Words that
    are changed at a severity are changed at all higher ones, in the same way. One word of a text always stays.

    Args:
        texts: a list of words for each text, or word indices ``[n, length]`` (int64), padded to one length.
        name: ``"word_replacement"`` or ``"word_dropping"``.
        severity: from 1, the mildest, to 5.
        seed: of the choice of words.
        others: the words (or word indices) that replacements are drawn from; one that is listed twice is drawn twice as often,
            so the words of a corpus are drawn by their frequency. Needed for ``"word_replacement"``.
        padding: of indices: the index that fills up short texts, which is left alone.
        pad: of indices: the end that is padded when words are left out.

    Examples:
        >>> text = "the engine of my car makes a strange noise".split()
        >>> corrupt_texts([text], "word_dropping", 4, seed=0)
        [['the', 'my', 'makes', 'strange']]
        >>> corrupt_texts([text], "word_replacement", 3, seed=0, others=["orbit", "goalie", "key"])
        [['the', 'orbit', 'goalie', 'my', 'orbit', 'orbit', 'a', 'strange', 'noise']]
        >>> corrupt_texts(torch.tensor([[0, 4, 9, 7, 7, 2]]), "word_dropping", 5, seed=0)
        tensor([[0, 0, 0, 9, 7, 7]])
    """
    known_name(name, TEXT_CORRUPTIONS, "a corruption of texts")
    share = _SHARES[check_severity(severity) - 1]
    integer("seed", seed)
    if pad not in ("start", "end"):
        raise InvalidArgumentError(f"Expected `pad` to be 'start' or 'end', but got {pad!r}.")
    pool = _pool(others) if name == "word_replacement" else None
    if not isinstance(texts, Tensor):
        return [_corrupted(_checked_words(text, place), share, pool, name, seed) for place, text in enumerate(texts)]
    if texts.dim() != 2 or texts.is_floating_point() or texts.is_complex() or texts.dtype == torch.bool:
        raise DataError(f"Expected word indices [n, length] of integers, but got {list(texts.shape)} of {texts.dtype}.")
    result = torch.full_like(texts, padding)
    for row, text in zip(result, texts, strict=True):
        real = text != padding
        words = torch.tensor(_corrupted(text[real].tolist(), share, pool, name, seed), dtype=row.dtype, device=row.device)
        if pool is not None:
            row[real] = words
        else:
            row[len(row) - len(words) if pad == "start" else 0 :][: len(words)] = words
    return result


def _corrupted(words: list[Word], share: float, pool: list[Word] | None, name: str, seed: int) -> list[Word]:
    """A text with a share of its words replaced from the pool, or left out without one."""
    content = hashlib.blake2b(repr(words).encode(), digest_size=16).hexdigest()
    generator = np.random.default_rng(derived_seed(seed, "corrupt", name, content))
    order = generator.random(len(words))
    changed = order < share
    if changed.all() and words:
        changed[order.argmax()] = False
    if pool is None:
        return [word for word, gone in zip(words, changed, strict=True) if not gone]
    picks = generator.integers(len(pool), size=len(words)).tolist()
    return [_other(word, pool, pick) if each else word for word, pick, each in zip(words, picks, changed, strict=True)]


def _other(word: Word, pool: list[Word], pick: int) -> Word:
    """The word of the pool at this place, or the next one that differs from ``word``."""
    while pool[pick] == word:
        pick = (pick + 1) % len(pool)
    return pool[pick]


def _pool(others: Any) -> list[Any]:
    if others is None or isinstance(others, str):
        raise InvalidArgumentError(
            f"Expected `others` to be the words that replacements are drawn from, but got {others!r}. Pass a vocabulary, or "
            "all words of a corpus."
        )
    pool = others.tolist() if isinstance(others, Tensor) else list(others)
    if len(set(pool)) < 2:
        raise InvalidArgumentError(f"Expected `others` to have at least two different words, but got {shortened(pool)}.")
    return pool


def _checked_words(text: Sequence[str], place: int) -> list[str]:
    if isinstance(text, str):
        raise DataError(f"Expected text {place} to be a list of words, but got {shortened(text)}. Split it: `text.split()`.")
    return list(text)
