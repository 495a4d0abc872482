"""Texts as inputs of a network: the indices of their words."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from calibayes.data.word_indices import frequent_words, sequences
from calibayes.errors import DataError
from calibayes.files.checked_fields import Fields
from calibayes.files.settings import DataSettings
from calibayes.tables import RowBlock
from calibayes.wording import listed

__all__ = ["TextCoding", "fit_text", "rarity", "text_words"]

# Runs of letters, digits and apostrophes; signs of Chinese and Japanese stand alone, since no blanks part their words.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:'[^\W_]+)*")
_MOST_WORDS = 1_000_000


def text_words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation.

    Examples:
        >>> text_words("Don't PANIC: it's only e-mail, Zoë.")
        ["don't", 'panic', "it's", 'only', 'e', 'mail', 'zoë']
    """
    return _WORD.findall(text.lower().replace("’", "'"))


@dataclass(frozen=True)
class TextCoding:
    """How texts become word indices.

    Attributes:
        columns: whose texts are read one after the other.
        vocabulary: the words of indices 1, 2, …; others are left out.
        length: how many words are looked at.
        once: whether a word that is there several times is taken once.
    """

    kind: ClassVar[str] = "text"
    columns: tuple[str, ...]
    vocabulary: tuple[str, ...]
    length: int
    once: bool

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that have to be there."""
        return self.columns

    def encode(self, block: RowBlock) -> Tensor:
        """Return the word indices ``[n, length]`` (int64) of rows of texts."""
        known = set(self.vocabulary)
        words = ([word for word in text if word in known] for text in _texts(block, self.columns))
        found = [list(dict.fromkeys(text)) if self.once else text for text in words]
        return sequences(found, self.vocabulary, self.length, keep="start")

    def to_dict(self) -> dict[str, Any]:
        """Everything, for a file."""
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "vocabulary": list(self.vocabulary),
            "length": self.length,
            "once": self.once,
        }

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """The inverse of `to_dict`."""
        columns, vocabulary = fields.texts("columns", 1000), fields.texts("vocabulary", _MOST_WORDS)
        if not columns or not vocabulary:
            raise fields.wrong("columns" if not columns else "vocabulary", "at least one")
        return cls(columns, vocabulary, fields.size("length", 1, 4096), fields.flag("once"))


def fit_text(part: RowBlock, settings: DataSettings, once: bool) -> TextCoding:
    """The vocabulary of the training part: its most frequent words that are there at least twice."""
    texts = list(_texts(part, settings.text))
    counts = Counter(word for text in texts for word in text)
    repeated = sum(count > 1 for count in counts.values())
    if not repeated:
        raise DataError(f"No word is there twice in {listed(settings.text)}. Is this the right column?")
    return TextCoding(settings.text, frequent_words(texts, min(settings.vocabulary, repeated)), settings.length, once)


def rarity(tokens: Tensor, vocabulary: int) -> Tensor:
    r"""How rare each word index is among $n$ texts ``[n, length]``: $1 + \log\frac{1 + n}{1 + n_w}$, where $n_w$ have it."""
    has = torch.zeros(vocabulary)
    for text in tokens:
        has[text.unique()] += 1
    return 1 + math.log(1 + len(tokens)) - has.log1p()


def _texts(block: RowBlock, columns: tuple[str, ...]) -> list[list[str]]:
    """The words of each row's texts."""
    parts = [block.table.column(name).to_pylist() for name in columns]
    return [text_words("\n".join(part or "" for part in row)) for row in zip(*parts, strict=True)]
