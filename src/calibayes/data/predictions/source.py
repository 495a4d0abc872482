"""What every reader of a file gives to the code that looks for labels and probabilities in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from calibayes.data.predictions.table import ColumnsUsed

__all__ = ["Contents", "Floats", "Ints", "Place", "Raw", "Source", "TextColumn"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of texts: ``values[codes[i]]`` is the text of row ``i``. Every value occurs, and only once in ``values``."""

    codes: Ints
    values: tuple[str, ...]

    def first(self, code: int) -> int:
        """The first row that holds ``values[code]``."""
        return int(np.argmax(self.codes == code))


@dataclass(frozen=True, eq=False)
class Contents:
    """Columns that were read: texts by name, and numbers ``[n, k]`` in the order in which they were asked for."""

    texts: dict[str, TextColumn]
    numbers: Floats


class Place(Protocol):
    """Where a value stands in its file. Rows are counted from 0 here, and from 1 in what is said."""

    @property
    def path(self) -> Path:
        """The file."""

    def where(self, row: int, column: str) -> str:
        """``line 17, column 'p_cat'``, in the words of the format."""

    def cell(self, row: int, column: str) -> str:
        """The value as it stands in the file."""


class Source(Place, Protocol):
    """A file that holds a table with named columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, each once."""

    def numeric(self) -> frozenset[str]:
        """Which columns seem to hold numbers."""

    def head(self, columns: Sequence[str]) -> Floats:
        """The first rows of some columns of numbers, NaN where there is none."""

    def head_labels(self, column: str) -> tuple[str, ...]:
        """The distinct texts in the first rows of a column."""

    def read(self, texts: Sequence[str], numbers: Sequence[str]) -> Contents:
        """Some columns whole, as texts and as numbers; numbers may be NaN or infinite where the file says so."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Raw:
    """What a file holds, before labels are matched to classes and scores are checked.

    Attributes:
        scores: probabilities or logits, ``[n, k]``; ``k = 1`` is the score of one of two classes.
        namings: what the classes may be called, the likeliest first; for ``k = 1`` the class that the
            column speaks of, or both classes where the file names both.
        half: the numbers were stored in half precision, so that rows sum to 1 only roughly.
    """

    place: Place
    used: ColumnsUsed
    labels: TextColumn
    scores: Floats
    logits: bool
    namings: tuple[tuple[str, ...], ...]
    weights: Floats | None
    ids: TextColumn | None
    half: bool = False
