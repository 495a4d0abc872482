"""Tables of numbers, categories and dates as inputs of a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.data.predictions.wording import complaint, counted, shown
from calibayes.errors import DataError
from calibayes.files.cells import are_dates, are_numbers, categories, cells, dates, first_not, numbers, where
from calibayes.files.columns import Category, Column, Date, Number, column_from
from calibayes.files.fields import Fields
from calibayes.files.settings import DataSettings

__all__ = ["TableCoding", "fit_table"]

Rows = npt.NDArray[np.int64]

_MOST_COLUMNS = 100_000
_MOST_BYTES = 4 << 30
_MOST_PLACES = 64
_GAPS = 1.1
_MOST_OF = 0.9
_OTHER_DATE = r"^\d{1,4}[./-]\d{1,2}[./-]\d{2,4}( .*)?$"
_COMMA = r"^[+-]?\d*,\d+$"


@dataclass(frozen=True)
class TableCoding:
    """How the columns of a table become numbers.

    Attributes:
        columns: one by one, in the order of the numbers.
    """

    kind: ClassVar[str] = "table"
    columns: tuple[Column, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that have to be there."""
        return tuple(column.name for column in self.columns)

    @property
    def width(self) -> int:
        """How many numbers an example has."""
        return sum(column.width for column in self.columns)

    def encode(self, table: Any, first: int = 0) -> Tensor:
        """The numbers ``[n, width]`` (float32) of the rows of an Arrow table of texts."""
        size = 4 * table.num_rows * self.width
        if size > _MOST_BYTES:
            raise DataError(
                f"{table.num_rows:,} rows of {self.width:,} numbers take {size / 2**30:.1f} GiB, too much at once. "
                "Train on some of them, drawn at random: --max-rows; or leave columns out: --ignore."
            )
        return torch.from_numpy(np.concatenate([column.encode(table, first) for column in self.columns], axis=1))

    def to_dict(self) -> dict[str, Any]:
        """Everything, for a file."""
        return {"kind": self.kind, "columns": [column.to_dict() for column in self.columns]}

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """The inverse of `to_dict`."""
        columns = tuple(map(column_from, fields.each("columns", _MOST_COLUMNS)))
        if not columns or len({column.name for column in columns}) < len(columns):
            raise fields.wrong("columns", "columns of different names")
        return cls(columns)


def fit_table(
    table: Any, train: Rows, settings: DataSettings, taken: Sequence[str], rows: Rows | None = None
) -> tuple[TableCoding, list[str]]:
    """How a table becomes numbers, and what the user should know of it.

    What kind a column is of is seen from all rows; means, deviations and categories are those of the training part alone.

    Args:
        table: an Arrow table of texts.
        train: the rows of the training part.
        settings: which columns are left out, or are categories.
        taken: columns that are something else.
        rows: the numbers of the table's rows in their file, if some were left out.
    """
    part = table.take(train)
    rows = np.arange(table.num_rows) if rows is None else rows
    found: list[Column] = []
    notes: list[str] = []
    for name in table.column_names:
        if name in taken or name in settings.ignore:
            continue
        made = _fitted(table, part, rows, name, name in settings.categorical)
        if isinstance(made, str):
            notes.append(f"Column {shown(name)} {made}: not used.")
        else:
            found.append(made)
            notes += [f"Column {shown(name)} is taken for dates."] if isinstance(made, Date) else []
    if not found:
        raise DataError(f"No column is left to learn from. {' '.join(notes)} If one holds texts, name it: --text.")
    return TableCoding(tuple(found)), notes


def _fitted(table: Any, part: Any, rows: Rows, name: str, categorical: bool) -> Column | str:
    """The column, or why it is not used."""
    if not name.strip():
        return "has no name"
    whole, own = cells(table, name), cells(part, name)
    if own.null_count == len(own):
        return "is empty"
    good = are_numbers(whole)
    if categorical or (first_not(good) is not None and first_not(are_dates(whole)) is not None):
        if not categorical:
            _refuse_half_numbers(whole, good, name, rows)
        return _category(categories(part, name), name)
    if first_not(good) is not None:
        dates(whole, name, rows)  # one that cannot be read is found now, not at its turn
        moments = dates(own, name)
        return "is empty" if np.isnan(moments).all() else Date.fit(name, moments)
    every, values = numbers(whole, name, rows), numbers(own, name)
    if _counts_rows(every, rows):
        return "counts the rows"
    known = values[~np.isnan(values)]
    if not len(known):
        return "is empty"
    return "is always the same" if len(known) == len(values) and (known == known[0]).all() else Number.fit(name, values)


def _counts_rows(values: npt.NDArray[np.float64], rows: Rows) -> bool:
    """Whether whole numbers go up with the rows, but for a few that were taken out before the file was written."""
    if len(values) < 3 or not ((np.diff(values) > 0).all() and (values == np.round(values)).all()):
        return False
    return bool(np.ptp(rows) <= np.ptp(values) <= _GAPS * np.ptp(rows))


def _category(column: Any, name: str) -> Column | str:
    """The categories of the training part, each that is there twice, the most frequent of very many."""
    counts = {each["values"]: each["counts"] for each in column.value_counts().to_pylist() if each["values"] is not None}
    known, rows = [value for value, count in counts.items() if count > 1], len(column) - column.null_count
    if len(counts) == 1 and not column.null_count:
        return "is always the same"
    if not known or (len(counts) > 20 and 2 * len(counts) > rows):
        return f"has {counted(len(counts), 'different text')} in {counted(rows, 'row')} (texts to classify by: --text)"
    values = sorted(sorted(known, key=lambda value: (-counts[value], value))[:_MOST_PLACES])
    return Category(name, tuple(values), unknown=len(values) < len(counts), missing=column.null_count > 0)


def _refuse_half_numbers(column: Any, good: Any, name: str, rows: Rows) -> None:
    """Raise where texts are plainly meant for numbers or dates: as categories they would be worth nothing."""
    from pyarrow import compute

    filled = len(column) - column.null_count
    row = first_not(good) or 0
    iso = are_dates(column)
    way_out = f"Or leave the column out, --ignore {name}, or take it for categories, --categorical {name}."
    if compute.sum(iso).as_py() > _MOST_OF * filled:
        row = first_not(iso) or 0
        what = f"{shown(column[row].as_py())} is not a date. Write dates like 2024-12-31."
        raise DataError(f"{where(row, name, rows)} {what} {way_out}")
    cell, place = column[row].as_py(), where(row, name, rows)
    share = {how: compute.sum(compute.match_substring_regex(column, how)).as_py() / filled for how in (_COMMA, _OTHER_DATE)}
    if share[_OTHER_DATE] > _MOST_OF:
        raise DataError(f"{place} {shown(cell)} looks like a date. Write dates like 2024-12-31. {way_out}")
    if share[_COMMA] > 0.5 or compute.sum(good).as_py() > _MOST_OF * filled:
        raise DataError(f"{place} {complaint(cell)} {way_out}")
