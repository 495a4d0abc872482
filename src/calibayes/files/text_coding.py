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


@dataclass(frozen=True)
class TextCoding:
    """The conversion of texts to word indices."""

    kind: ClassVar[str] = "text"
    columns: tuple[str, ...]  # whose texts are joined
    vocabulary: tuple[str, ...]  # the words of indices 1, 2, …; others are left out
    length: int  # the number of words that are read
    once: bool  # count a repeated word once

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that must be present."""
        return self.columns

    def encode(self, block: RowBlock) -> Tensor:
        """Return the word indices ``[n, length]`` (int64) of rows of texts."""
        known = set(self.vocabulary)
        words = ([word for word in text if word in known] for text in _texts(block, self.columns))
        kept = [list(dict.fromkeys(text)) if self.once else text for text in words]
        return sequences(kept, self.vocabulary, self.length, keep="start")

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for a file."""
        return {"kind": self.kind, **vars(self), "columns": list(self.columns), "vocabulary": list(self.vocabulary)}

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """Invert `to_dict`."""
        columns, vocabulary = fields.texts("columns", 1000), fields.texts("vocabulary", _MOST_WORDS)
        if not columns or not vocabulary:
            raise fields.wrong("columns" if not columns else "vocabulary", "at least one")
        return cls(columns, vocabulary, fields.size("length", 1, 4096), fields.flag("once"))


def fit_text(part: RowBlock, settings: DataSettings, once: bool) -> TextCoding:
    """Learn the vocabulary from the training part: its most frequent words that occur at least twice."""
    texts = list(_texts(part, settings.text))
    counts = Counter(word for text in texts for word in text)
    repeated = sum(count > 1 for count in counts.values())
    if not repeated:
        raise DataError(f"No word occurs twice in {listed(settings.text)}. Is this the right column?")
    return TextCoding(settings.text, frequent_words(texts, min(settings.vocabulary, repeated)), settings.length, once)


def rarity(tokens: Tensor, vocabulary: int) -> Tensor:
    r"""Return the rarity of the words of $n$ texts ``[n, length]``: $1 + \log\frac{1 + n}{1 + n_w}$ if $n_w$ have it."""
    has = torch.zeros(vocabulary)
    for text in tokens:
        has[text.unique()] += 1
    return 1 + math.log(1 + len(tokens)) - has.log1p()


def _texts(block: RowBlock, columns: tuple[str, ...]) -> list[list[str]]:
    parts = [block.table.column(name).to_pylist() for name in columns]
    return [text_words("\n".join(part or "" for part in row)) for row in zip(*parts, strict=True)]
