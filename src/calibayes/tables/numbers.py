"""Texts as numbers, for many columns at once; the spellings of numbers and of missing values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibayes.wording import shown

Floats = npt.NDArray[np.float64]

#: What people write, in upper or lower case, where a number is missing.
MISSING = frozenset({"nan", "+nan", "-nan", "na", "n/a", "#n/a", "<na>", "null", "none", "nil", "-", "?", "."})
_NUMBER = {mark: rf"^[+-]?(?:\d+{point}?\d*|{point}\d+)(?:[eE][+-]?\d+)?$" for mark, point in ((".", r"\."), (",", ","))}
_COMPILED = {mark: re.compile(rf"\s*{pattern[1:-1]}\s*", re.ASCII) for mark, pattern in _NUMBER.items()}
_INFINITE = re.compile(r"[+-]?(?:inf|infinity|∞)", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?[\d.,'\s]*,[\d.,'\s]*(?:[eE][+-]?\d+)?", re.ASCII)
_WHOLE_NUMBER = re.compile(r"([+-]?)0*(\d+)(?:\.0*)?", re.ASCII)
FEW_CELLS = 256
"""As many are faster read one by one than by Arrow, which services notice."""
_CELLS = 1 << 21  # parsed together, so that wide tables are as fast as long ones


@dataclass(frozen=True, eq=False)
class ParsedNumbers:
    """Columns of texts as numbers."""

    values: Floats  # [n, k], NaN where there is no number
    good: npt.NDArray[np.bool_]  # [n, k], whether a cell holds a number or nothing, or says that it is missing

    def first_bad(self) -> tuple[int, int] | None:
        """Return the row and column of the first cell that should hold a number and does not."""
        rows = ~self.good.all(axis=1)
        if not rows.any():
            return None
        row = int(np.argmax(rows))
        return row, int(np.argmin(self.good[row]))


def parse_numbers(columns: Sequence[Any], decimal: str = ".") -> ParsedNumbers:
    """Parse Arrow arrays of texts, all of one length, as numbers.

    Examples:
        >>> import pyarrow as pa
        >>> parsed = parse_numbers([pa.array(["1", " 2.5 ", "NA"]), pa.array(["", "+1e3", "red"])])
        >>> parsed.values.tolist(), parsed.first_bad()
        ([[1.0, nan], [2.5, 1000.0], [nan, nan]], (2, 1))
    """
    rows = len(columns[0]) if columns else 0
    values, good = np.empty((rows, len(columns))), np.empty((rows, len(columns)), dtype=bool)
    step = columns_at_once(rows)
    for begin in range(0, len(columns), step):
        group = columns[begin : begin + step]
        flat, fine = _parsed(group, decimal)
        values[:, begin : begin + step] = flat.reshape(len(group), rows).T
        good[:, begin : begin + step] = fine.reshape(len(group), rows).T
    return ParsedNumbers(values, good)


def columns_at_once(rows: int) -> int:
    """Return the number of columns to parse together: enough to be fast, few enough for memory."""
    return max(1, _CELLS // max(rows, 1))


def _parsed(columns: Sequence[Any], decimal: str) -> tuple[Floats, npt.NDArray[np.bool_]]:
    if len(columns) * len(columns[0]) <= FEW_CELLS:
        texts = [text for column in columns for text in column.to_pylist()]
        numbers = [_parsed_cell(text, decimal) for text in texts]
        return np.array([math.nan if number is None else number for number in numbers]), np.array(
            [number is not None for number in numbers]
        )
    import pyarrow as pa
    from pyarrow import compute

    chunks = [chunk for column in columns for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])]
    cells = compute.utf8_trim_whitespace(pa.concat_arrays([chunk.cast(pa.large_string()) for chunk in chunks]))
    plain = compute.match_substring_regex(cells, _NUMBER[decimal]).fill_null(False)
    known = compute.if_else(plain, cells, None)
    if decimal != ".":
        known = compute.replace_substring(known, decimal, ".")
    values: Floats = known.cast(pa.float64()).to_numpy(zero_copy_only=False)
    fine: npt.NDArray[np.bool_] = plain.to_numpy(zero_copy_only=False)
    if not fine.all():
        fine = fine | says_missing(cells).to_numpy(zero_copy_only=False)
    return values, fine


def _parsed_cell(text: str | None, decimal: str) -> float | None:
    """Return a cell as a number, NaN if it is missing, and None if it holds something else."""
    cell = "" if text is None else text.strip()
    if _COMPILED[decimal].fullmatch(cell):
        return float(cell.replace(decimal, "."))
    return math.nan if is_missing(cell) else None


def is_missing(cell: str) -> bool:
    """Return True if a trimmed text is empty or says that a value is missing."""
    return not cell or cell.lower() in MISSING


def says_missing(cells: Any) -> Any:
    """Return which cells of an Arrow array of trimmed texts are empty or say that a value is missing."""
    import pyarrow as pa
    from pyarrow import compute

    words = pa.array(["", *sorted(MISSING)], pa.large_string())
    return compute.or_(compute.is_null(cells), compute.is_in(compute.utf8_lower(cells), words))


def plain_text(value: bool | int | float, decimal: str = ".") -> str:
    """Write a truth value or a number as a CSV file would.

    Examples:
        >>> plain_text(True), plain_text(3), plain_text(3.0), plain_text(0.5, ",")
        ('true', '3', '3', '0,5')
    """
    return str(value).lower() if isinstance(value, bool) else repr(value).removesuffix(".0").replace(".", decimal)


def is_number(cell: str | None, decimal: str = ".") -> bool:
    """Return True if a cell holds a finite number."""
    return cell is not None and _COMPILED[decimal].fullmatch(cell) is not None


def label_key(text: str) -> str:
    """Return the same text for all spellings of a label: ``3``, ``3.0`` and `` 3``, ``True`` and ``true``.

    Examples:
        >>> label_key("3.0"), label_key(" 03"), label_key("-0"), label_key("TRUE"), label_key("Cat ")
        ('3', '3', '0', 'true', 'Cat')
    """
    text = text.strip()
    if number := _WHOLE_NUMBER.fullmatch(text):
        return number[2] if number[1] != "-" or number[2] == "0" else "-" + number[2]
    return text.lower() if text.lower() in ("true", "false") else text


def is_whole_number(text: str) -> bool:
    """Return True if a text is a whole number, also one written ``3.0``."""
    return _WHOLE_NUMBER.fullmatch(text.strip()) is not None


def number_problem(cell: str, decimal: str = ".") -> str:
    """Say why the text of a cell is not a number, and how to write it.

    Examples:
        >>> number_problem("50%")
        "'50%' is a percentage. Write it as a fraction of 1, like 0.25."
    """
    text = cell.strip()
    if not text or text.lower() in MISSING:
        return not_finite(cell)
    if _INFINITE.fullmatch(text):
        return not_finite(cell, np.inf)
    if decimal == "," and "." in text and is_number(text):
        return f"{shown(cell)} has a decimal point, but with --decimal ',' numbers have a comma. Write them all the same way."
    if decimal == "." and _COMMA.fullmatch(text):
        advice = "Write numbers with a decimal point and without thousands separators, like 0.25, or pass --decimal ','."
        return f"{shown(cell)} has a comma. {advice}"
    if text.endswith("%"):
        return f"{shown(cell)} is a percentage. Write it as a fraction of 1, like 0.25."
    example = "a decimal point, like 0.25" if decimal == "." else "a decimal comma, like 0,25"
    return f"{shown(cell)} is not a number. Write it with digits and {example}."


def not_finite(cell: str, value: float = np.nan) -> str:
    """Say what to do with a number that is missing or infinite."""
    if np.isinf(value):
        return f"{shown(cell)} is infinite. Look for an overflow where the file was written."
    what = f"{shown(cell)} is a missing value" if cell.strip() else "the cell is empty"
    return f"{what}. Fill it in or leave the row out."
