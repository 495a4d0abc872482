"""What a file of predictions holds, before labels are matched to classes and scores are checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from calibayes.data.predictions.prediction_table import ColumnsUsed
from calibayes.errors import PredictionFileError
from calibayes.tables.formats import file_problem

__all__ = ["CellPlaces", "Floats", "Ints", "RawPredictions", "TextColumn", "problem"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def problem(path: Path, what: str, *, where: str = "") -> PredictionFileError:
    """Return the error to raise for what is wrong with a file of predictions (at ``where``)."""
    return PredictionFileError(str(file_problem(path, what, where)))


class CellPlaces(Protocol):
    """Where a value is in its file. Rows are counted from 0 here, and from 1 in messages."""

    path: Path

    def where(self, row: int, column: str) -> str:
        """Return the place in the words of the format: ``line 17, column 'p_cat'``."""

    def cell(self, row: int, column: str) -> str:
        """Return the value as the file has it."""


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of texts: ``values[codes[i]]`` is the text of row ``i``. Every value occurs, and only once in ``values``."""

    codes: Ints
    values: tuple[str, ...]

    def first(self, code: int) -> int:
        """Return the first row that holds ``values[code]``."""
        return int(np.argmax(self.codes == code))


@dataclass(frozen=True, eq=False, kw_only=True)
class RawPredictions:
    """What a file holds.

    Attributes:
        place: where each value is.
        used: which columns were taken for what.
        labels: the true classes.
        scores: probabilities or logits, ``[n, k]``; ``k = 1`` is the score of one of two classes.
        logits: whether the scores are logits.
        namings: what the classes may be called, the likeliest first; for ``k = 1`` the class that the
            column speaks of, or both classes where the file names both.
        weights: of the rows, if there are any.
        ids: of the rows, if there are any.
        half: the numbers were stored in half precision, so that rows sum to 1 only roughly.
    """

    place: CellPlaces
    used: ColumnsUsed
    labels: TextColumn
    scores: Floats
    logits: bool
    namings: tuple[tuple[str, ...], ...]
    weights: Floats | None
    ids: TextColumn | None
    half: bool = False
