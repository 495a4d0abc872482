"""Cells of a column: texts, numbers and dates, with a place for whatever is none of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from calibayes.data.predictions.texts import key
from calibayes.data.predictions.wording import MISSING, complaint, shown
from calibayes.errors import DataError

__all__ = [
    "DATE_PARTS",
    "Numbering",
    "are_dates",
    "are_numbers",
    "categories",
    "cells",
    "dates",
    "first_not",
    "numbers",
    "where",
]

Floats = npt.NDArray[np.float64]
Numbering = int | npt.NDArray[np.int64]
"""The number of the first row in its file, counted from 0, or those of all rows where some were left out."""

DATE_PARTS = ("day", "month", "weekday", "hour")
_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 1e150  # its square is a number, too
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def cells(table: Any, name: str) -> Any:
    """A column as an Arrow array of texts without blanks around them; null where there is nothing."""
    import pyarrow as pa
    from pyarrow import compute

    column = table.column(name)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    trimmed = compute.utf8_trim_whitespace(column)
    return compute.if_else(compute.equal(trimmed, ""), None, trimmed)


def categories(table: Any, name: str) -> Any:
    """A column as `cells` has it, but with one spelling for whole numbers and truth values: 3 for 3.0, true for True."""
    import pyarrow as pa

    column = cells(table, name).dictionary_encode()
    return pa.array([key(text) for text in column.dictionary.to_pylist()], pa.large_string()).take(column.indices)


def where(row: int, name: str, first: Numbering = 0) -> str:
    """A cell for messages, by the number of its row in the file, counted from 1."""
    number = first + row if isinstance(first, int) else int(first[row])
    return f"Row {number + 1:,}, column {shown(name)}:"


def are_numbers(column: Any) -> Any:
    """Which cells hold a number, or say that it is missing (an Arrow array; null where the cell is)."""
    from pyarrow import compute

    return compute.or_(compute.match_substring_regex(column, _NUMBER), _missing(column))


def are_dates(column: Any) -> Any:
    """Which cells hold a date as ISO 8601 writes it, perhaps with a time of day, or say that it is missing."""
    from pyarrow import compute

    return compute.or_(compute.match_substring_regex(column, _DATE), _missing(column))


def numbers(column: Any, name: str, first: Numbering = 0) -> Floats:
    """The numbers of a column, NaN where one is missing.

    Args:
        column: what `cells` returns.
        name: of the column.
        first: the numbers of the rows, for messages.
    """
    import pyarrow as pa
    from pyarrow import compute

    row = first_not(are_numbers(column))
    if row is not None:
        raise DataError(f"{where(row, name, first)} {complaint(column[row].as_py())}")
    known = compute.if_else(_missing(column), None, column)
    values: Floats = compute.cast(known, pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    large = np.abs(values) > _LARGEST
    if large.any():
        row = int(np.argmax(large))
        what = f"{shown(column[row].as_py())} is too large a number. Where it says that one is missing, leave the cell empty."
        raise DataError(f"{where(row, name, first)} {what}")
    return values


def dates(column: Any, name: str, first: Numbering = 0) -> Floats:
    """Dates as numbers ``[n, 4]``: days since 1970, month, day of the week and hour; NaN where one is missing."""
    from pyarrow import compute

    known = compute.if_else(_missing(column), None, column).dictionary_encode()
    parts = np.full((len(known.dictionary) + 1, len(DATE_PARTS)), np.nan)  # the last for those that are missing
    for place, text in enumerate(known.dictionary.to_pylist()):
        found = _date_parts(text)
        if found is None:
            row = compute.index(column, text).as_py()
            what = f"{shown(text)} is not a date. Write it like 2024-12-31 or 2024-12-31 23:59."
            raise DataError(f"{where(row, name, first)} {what}")
        parts[place] = found
    places: npt.NDArray[np.int32] = known.indices.fill_null(len(known.dictionary)).to_numpy(zero_copy_only=False)
    return parts[places]


def _date_parts(text: str) -> tuple[float, ...] | None:
    """The numbers of a date; none if there is no such day."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return (moment - _EPOCH) / timedelta(days=1), moment.month, moment.weekday(), moment.hour


def first_not(good: Any) -> int | None:
    """The first row where an Arrow array is false; null counts as good."""
    bad = ~good.fill_null(True).to_numpy(zero_copy_only=False)
    return int(np.argmax(bad)) if bad.any() else None


def _missing(column: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    said = compute.is_in(compute.utf8_lower(column), pa.array(sorted(MISSING), pa.large_string()))
    return compute.if_else(compute.is_valid(column), said, None)
