"""Cells of a column: texts, numbers and dates, with a place for whatever is none of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calibayes.data.predictions.wording import MISSING, complaint, shown
from calibayes.errors import DataError

__all__ = ["DATE_PARTS", "are_dates", "are_numbers", "cells", "dates", "first_not", "numbers"]

Floats = npt.NDArray[np.float64]

DATE_PARTS = ("day", "month", "weekday", "hour")
_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def cells(table: Any, name: str) -> Any:
    """A column as an Arrow array of texts without blanks around them; null where there is nothing."""
    import pyarrow as pa
    from pyarrow import compute

    column = table.column(name)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    trimmed = compute.utf8_trim_whitespace(column)
    return compute.if_else(compute.equal(trimmed, ""), None, trimmed)


def are_numbers(column: Any) -> Any:
    """Which cells hold a number, or say that it is missing (an Arrow array; null where the cell is)."""
    from pyarrow import compute

    return compute.or_(compute.match_substring_regex(column, _NUMBER), _missing(column))


def are_dates(column: Any) -> Any:
    """Which cells hold a date as ISO 8601 writes it, perhaps with a time of day."""
    from pyarrow import compute

    return compute.match_substring_regex(column, _DATE)


def numbers(column: Any, name: str, first: int = 0) -> Floats:
    """The numbers of a column, NaN where one is missing.

    Args:
        column: what `cells` returns.
        name: of the column.
        first: the number of the first row, for messages.
    """
    import pyarrow as pa
    from pyarrow import compute

    row = first_not(are_numbers(column))
    if row is not None:
        cell = column[row].as_py()
        raise DataError(f"Row {first + row + 1:,}, column {shown(name)}: {complaint(cell)}")
    known = compute.if_else(_missing(column), None, column)
    values: Floats = compute.cast(known, pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise DataError(f"Row {first + row + 1:,}, column {shown(name)}: {shown(column[row].as_py())} is too large a number.")
    return values


def dates(column: Any, name: str, first: int = 0) -> Floats:
    """Dates as numbers ``[n, 4]``: days since 1970, month, day of the week and hour; NaN where one is missing."""
    import pandas as pd

    found = pd.to_datetime(pd.Series(column.to_pylist(), dtype=object), format="ISO8601", utc=True, errors="coerce")
    wrong = found.isna().to_numpy() & column.is_valid().to_numpy(zero_copy_only=False)
    if wrong.any():
        row = int(np.argmax(wrong))
        what = f"{shown(column[row].as_py())} is not a date. Write it like 2024-12-31 or 2024-12-31 23:59."
        raise DataError(f"Row {first + row + 1:,}, column {shown(name)}: {what}")
    days = (found - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    parts = (days, found.dt.month, found.dt.day_of_week, found.dt.hour)
    return np.stack([part.to_numpy(dtype=np.float64, na_value=np.nan) for part in parts], axis=1)


def first_not(good: Any) -> int | None:
    """The first row where an Arrow array is false; null counts as good."""
    bad = ~good.fill_null(True).to_numpy(zero_copy_only=False)
    return int(np.argmax(bad)) if bad.any() else None


def _missing(column: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    said = compute.is_in(compute.utf8_lower(column), pa.array(sorted(MISSING), pa.large_string()))
    return compute.if_else(compute.is_valid(column), said, None)
