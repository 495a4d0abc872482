"""Texts as dates: ISO 8601, or a format named by the user."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from calibayes.tables.numbers import Floats, says_missing
from calibayes.tables.table_file import RowBlock
from calibayes.wording import shown

__all__ = ["DATE_PARTS", "date_parts", "looks_like_dates"]

DATE_PARTS = ("day", "month", "weekday", "hour")
_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def looks_like_dates(cells: Any, date_format: str | None) -> npt.NDArray[np.bool_]:
    """Return which trimmed texts of an Arrow array hold a date, in ISO 8601 or ``date_format``, are empty or say "missing"."""
    from pyarrow import compute

    iso = compute.match_substring_regex(cells, _ISO).fill_null(False)
    good: npt.NDArray[np.bool_] = compute.or_(iso, says_missing(cells)).to_numpy(zero_copy_only=False)
    if date_format is None or good.all():
        return good
    coded = cells.dictionary_encode()
    dates = np.array([_in_format(text, date_format) is not None for text in coded.dictionary.to_pylist()] + [False])
    return np.asarray(good | dates[coded.indices.fill_null(len(dates) - 1).to_numpy(zero_copy_only=False)])


def date_parts(block: RowBlock, name: str) -> Floats:
    """Return the dates of a column as numbers ``[n, 4]``: days since 1970, month, weekday and hour; NaN for missing ones."""
    from pyarrow import compute

    cells, date_format = block.cells(name), block.source.options.date_format
    known = compute.if_else(says_missing(cells), None, cells).dictionary_encode()
    parts = np.full((len(known.dictionary) + 1, len(DATE_PARTS)), np.nan)  # the last for those that are missing
    for place, text in enumerate(known.dictionary.to_pylist()):
        moment = _moment(text, date_format)
        if moment is None:
            like = "2024-12-31 or 2024-12-31 23:59" if date_format is None else datetime(2024, 12, 31).strftime(date_format)
            raise block.problem(f"{shown(text)} is not a date. Write it like {like}.", compute.index(cells, text).as_py(), name)
        parts[place] = (moment - _EPOCH) / timedelta(days=1), moment.month, moment.weekday(), moment.hour
    places: npt.NDArray[np.int32] = known.indices.fill_null(len(known.dictionary)).to_numpy(zero_copy_only=False)
    return parts[places]


def _moment(text: str, date_format: str | None) -> datetime | None:
    try:
        moment = (date_format and _in_format(text, date_format)) or datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _in_format(text: str, date_format: str) -> datetime | None:
    try:
        return datetime.strptime(text, date_format)
    except ValueError:
        return None
