"""Texts as inputs of a network: the indices of their words."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from calibayes.checked_fields import Fields
from calibayes.data.word_indices import frequent_words, sequences, word_places
from calibayes.errors import DataError
from calibayes.files.settings import DataSettings
from calibayes.tables import RowBlock
from calibayes.wording import listed

__all__ = ["TextCoding", "fit_text", "text_words", "word_pairs"]

# Runs of letters, digits and apostrophes; Chinese and Japanese characters stand alone, as their words are not separated.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:'[^\W_]+)*")
_MOST_WORDS = 1_000_000


def text_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation.

    Examples:
        >>> text_words("Don't PANIC: it's only e-mail, Zoë.")
        ["don't", 'panic', "it's", 'only', 'e', 'mail', 'zoë']
    """
    return _WORD.findall(text.lower().replace("’", "'"))


def word_pairs(words: list[str]) -> list[str]:
    """Return neighbouring words, each pair as one text.

    Examples:
        >>> word_pairs(["not", "at", "all"])
        ['not at', 'at all']
    """
    return [f"{first} {second}" for first, second in pairwise(words)]


@dataclass(frozen=True)
class TextCoding:
    """The conversion of texts to word indices."""

    kind: ClassVar[str] = "text"
    columns: tuple[str, ...]  # whose texts are joined
    vocabulary: tuple[str, ...]  # the words of indices 1, 2, …, then pairs of words, if any; others are left out
    length: int  # the number of words that are read, and of pairs
    once: bool  # count a repeated word once
    bigrams: bool = False  # whether pairs of neighbouring words are words as well

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that must be present."""
        return self.columns

    @property
    def single_words(self) -> int:
        """The number of indices of single words, with 0; those from here on are of pairs."""
        return 1 + sum(" " not in word for word in self.vocabulary)

    def encode(self, block: RowBlock) -> Tensor:
        """Return the word indices (int64) of rows of texts: ``[n, length]``, with pairs of words ``[n, 2 · length]``."""
        texts = _texts(block, self.columns)
        parts = [texts, [word_pairs(text) for text in texts]] if self.bigrams else [texts]
        return torch.cat([self._indices(part) for part in parts], 1)

    def _indices(self, texts: list[list[str]]) -> Tensor:
        words = ([word for word in text if word in self._index_of] for text in texts)
        kept = [list(dict.fromkeys(text)) if self.once else text for text in words]
        return sequences(kept, self._index_of, self.length, keep="start")

    @cached_property
    def _index_of(self) -> dict[str, int]:
        return word_places(self.vocabulary)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for a file."""
        values = {**asdict(self), "columns": list(self.columns), "vocabulary": list(self.vocabulary)}
        if not self.bigrams:
            del values["bigrams"]  # a file as versions without them read it
        return {"kind": self.kind, **values}

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """Invert `to_dict`."""
        columns, vocabulary = fields.texts("columns", 1000), fields.texts("vocabulary", 2 * _MOST_WORDS)
        if not columns or not vocabulary:
            raise fields.wrong("columns" if not columns else "vocabulary", "at least one")
        bigrams = fields.has("bigrams") and fields.flag("bigrams")
        return cls(columns, vocabulary, fields.size("length", 1, 4096), fields.flag("once"), bigrams)


def fit_text(part: RowBlock, settings: DataSettings, once: bool, *, bigrams: bool = False) -> TextCoding:
    """Learn the vocabulary from the training part: its most frequent words that occur at least twice.

    Args:
        part: the rows.
        settings: the columns of texts, and how many words to know and to read.
        once: count a repeated word of a text once.
        bigrams: know pairs of neighbouring words as well: the most frequent ones, at most as many as words.
    """
    texts = list(_texts(part, settings.text))
    words = _repeated(texts, settings.vocabulary)
    if not words:
        raise DataError(f"No word occurs twice in {listed(settings.text)}. Is this the right column?")
    pairs = _repeated([word_pairs(text) for text in texts], settings.vocabulary) if bigrams else ()
    return TextCoding(settings.text, (*words, *pairs), settings.length, once, bigrams)


def _repeated(texts: list[list[str]], most: int) -> tuple[str, ...]:
    """The most frequent words of texts that occur at least twice."""
    counts = Counter(word for text in texts for word in text)
    repeated = sum(count > 1 for count in counts.values())
    return frequent_words(texts, min(most, repeated)) if repeated else ()


def _texts(block: RowBlock, columns: tuple[str, ...]) -> list[list[str]]:
    parts = [block.table.column(name).to_pylist() for name in columns]
    return [text_words("\n".join(part or "" for part in row)) for row in zip(*parts, strict=True)]
