"""Tables of numbers, categories and dates as inputs of a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.checked_fields import Fields
from calibayes.errors import DataError
from calibayes.files.settings import DataSettings
from calibayes.files.table_columns import (
    CategoryColumn,
    DateColumn,
    InputColumn,
    NumberColumn,
    categories,
    column_from,
    raw_numbers,
    standardised,
)
from calibayes.tables import RowBlock
from calibayes.tables.dates import DATE_PARTS, date_parts, looks_like_dates
from calibayes.tables.numbers import Floats, ParsedNumbers, columns_at_once, number_problem, parse_numbers
from calibayes.wording import counted, shown

__all__ = ["TableCoding", "fit_table", "has_inputs"]

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_MOST_COLUMNS = 100_000
_MOST_BYTES = 4 << 30
_MOST_PLACES = 64
_GAPS = 1.1
_MOST_OF = 0.9
_LARGEST = 1e150  # its square is finite, too
_OTHER_DATE = r"^\d{1,4}[./-]\d{1,2}[./-]\d{2,4}( .*)?$"
_COMMA = r"^[+-]?\d*,\d+$"


@dataclass(frozen=True)
class TableCoding:
    """The conversion of a table's columns to numbers, in their order.

    Attributes:
        columns: one by one.
        raw: for networks that begin with `TableInputs`, and for trees: a number is not clipped and NaN where it is missing, and
            a category is its place. Otherwise missing numbers are zero with a flag, and a category is a one at its place.
    """

    kind: ClassVar[str] = "table"
    columns: tuple[InputColumn, ...]
    raw: bool = False

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """The columns that must be present."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def width(self) -> int:
        """The number of inputs of an example."""
        return sum(self._widths)

    @property
    def _widths(self) -> list[int]:
        if not self.raw:
            return [column.width for column in self.columns]
        return [len(DATE_PARTS) if isinstance(column, DateColumn) else 1 for column in self.columns]

    @cached_property
    def places(self) -> dict[str, range]:
        """The inputs that each column becomes."""
        starts = np.cumsum([0, *self._widths]).tolist()
        return {column.name: range(*ends) for column, ends in zip(self.columns, pairwise(starts), strict=True)}

    @property
    def numbers(self) -> list[int]:
        """The places of raw numbers."""
        places = self.places
        return [place for each in self.columns if not isinstance(each, CategoryColumn) for place in places[each.name]]

    @property
    def categories(self) -> list[tuple[int, int]]:
        """The places of raw categories, and how many there are of each, with one for all others."""
        places = self.places
        return [(places[each.name][0], len(each.values) + 1) for each in self.columns if isinstance(each, CategoryColumn)]

    def encode(self, block: RowBlock) -> Tensor:
        """Return the numbers ``[n, width]`` (float32) of rows of texts."""
        rows, width = len(block.rows), self.width
        if 4 * rows * width > _MOST_BYTES:
            raise DataError(
                f"{rows:,} rows of {width:,} numbers take {4 * rows * width / 2**30:.1f} GiB, too much at once. "
                "Train on some of them, drawn at random: --max-rows; or leave columns out: --ignore."
            )
        coded = np.empty((rows, width), dtype=np.float32)
        numbers: dict[str, tuple[int, NumberColumn]] = {}
        for column, places in zip(self.columns, self.places.values(), strict=True):
            if isinstance(column, NumberColumn):
                numbers[column.name] = (places.start, column)
            else:
                coded[:, places.start : places.stop] = column.encode_raw(block) if self.raw else column.encode(block)
        for names, parsed in _parsed_groups(block, list(numbers)):
            if (bad := parsed.first_bad()) is not None:
                row, name = bad[0], names[bad[1]]
                raise block.problem(number_problem(block.cells(name)[row].as_py(), block.source.options.decimal), row, name)
            values = parsed.values
            _check_sizes(values, block, names)
            starts, columns = zip(*(numbers[name] for name in names), strict=True)
            means, stds = (np.array([getattr(column, part) for column in columns]) for part in ("mean", "std"))
            if self.raw:
                coded[:, list(starts)] = raw_numbers(values, means, stds)
                continue
            coded[:, list(starts)] = standardised(values, means, stds)
            flagged = [place for place, column in enumerate(columns) if column.missing]
            coded[:, [starts[place] + 1 for place in flagged]] = np.isnan(values[:, flagged])
        return torch.from_numpy(coded)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for a file."""
        columns = [column.to_dict() for column in self.columns]
        return {"kind": self.kind, "columns": columns, **({"raw": True} if self.raw else {})}

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """Invert `to_dict`."""
        columns = tuple(map(column_from, fields.each("columns", _MOST_COLUMNS)))
        if not columns or len({column.name for column in columns}) < len(columns):
            raise fields.wrong("columns", "columns of different names")
        return cls(columns, fields.has("raw") and fields.flag("raw"))


def _parsed_groups(block: RowBlock, names: Sequence[str]) -> Iterator[tuple[Sequence[str], ParsedNumbers]]:
    """Yield columns as numbers, as many at a time as is fast."""
    step = columns_at_once(len(block.rows))
    for begin in range(0, len(names), step):
        group = names[begin : begin + step]
        yield group, parse_numbers([block.table.column(name) for name in group], block.source.options.decimal)


def _check_sizes(values: Floats, block: RowBlock, names: Sequence[str]) -> None:
    large = np.abs(values) > _LARGEST
    if large.any():
        row = int(np.argmax(large.any(axis=1)))
        name = names[int(np.argmax(large[row]))]
        what = f"{shown(block.cells(name)[row].as_py())} is too large a number. "
        raise block.problem(what + "If it stands for a missing value, leave the cell empty.", row, name)


def fit_table(block: RowBlock, train: Rows, settings: DataSettings, taken: Sequence[str]) -> tuple[TableCoding, list[str]]:
    """Find the conversion of a table to numbers, and notes for the user.

    The kind of a column is decided by all rows; means, deviations and categories are those of the training part alone.

    Args:
        block: the rows, as texts.
        train: the places of the training part.
        settings: which columns are ignored, or are categories.
        taken: columns that are something else.
    """
    columns: list[InputColumn] = []
    notes: list[str] = []
    for name, fitted in _fitted_columns(block, train, settings, taken):
        if isinstance(fitted, str):
            notes.append(f"Column {shown(name)} {fitted}: not used.")
        else:
            columns.append(fitted)
            notes += [f"Column {shown(name)} is taken for dates."] if isinstance(fitted, DateColumn) else []
    if not columns:
        raise DataError(f"No column is left to learn from. {' '.join(notes)} If one holds texts, name it: --text.")
    return TableCoding(tuple(columns)), notes


def has_inputs(block: RowBlock, settings: DataSettings, taken: Sequence[str]) -> bool:
    """Return True if a table has a column to learn from: one that does not just number or name the rows.

    Args:
        block: the rows, as texts.
        settings: which columns are ignored, or are categories.
        taken: columns that are something else.
    """
    try:
        found = _fitted_columns(block, np.arange(len(block.rows)), settings, taken)
        return any(not isinstance(fitted, str) for _, fitted in found)
    except DataError:  # numbers or dates that cannot be read
        return True


def _fitted_columns(
    block: RowBlock, train: Rows, settings: DataSettings, taken: Sequence[str]
) -> Iterator[tuple[str, InputColumn | str]]:
    """Yield the names of columns, and what each becomes, or why it is not used."""
    left_out = {*taken, *settings.ignore}
    names = [name for name in block.table.column_names if name not in left_out]
    for group, parsed in _parsed_groups(block, names):
        numeric: Flags = np.asarray(parsed.good.all(axis=0))
        for place, name in enumerate(group):
            if numeric[place] and name not in settings.categorical and not _in_date_format(block, name):
                _check_sizes(parsed.values[:, [place]], block, [name])
                yield name, _fitted_numbers(parsed.values[:, place], train, block.rows, name)
            else:
                yield name, _fitted_texts(block, train, name, parsed.good[:, place], name in settings.categorical)


def _in_date_format(block: RowBlock, name: str) -> bool:
    """Return True if all numbers of a column are dates in the format that the user named, like 20241231."""
    date_format = block.source.options.date_format
    if date_format is None:
        return False
    filled = block.cells(name).drop_null()
    return bool(len(filled)) and all(looks_like_dates(part, date_format).all() for part in (filled[:1], filled))


def _fitted_numbers(values: Floats, train: Rows, rows: Rows, name: str) -> NumberColumn | str:
    """Return a column of numbers, or why it is not used."""
    own = values[train]
    known = own[~np.isnan(own)]
    if not len(known):
        return "is empty"
    if _counts_rows(values, rows):
        return "counts the rows"
    return "is always the same" if len(known) == len(own) and (known == known[0]).all() else NumberColumn.fit(name, own)


def _counts_rows(values: Floats, rows: Rows) -> bool:
    """Return True if whole numbers go up with the rows, apart from a few gaps."""
    if len(values) < 3 or not ((np.diff(values) > 0).all() and (values == np.round(values)).all()):
        return False
    return bool(np.ptp(rows) <= np.ptp(values) <= _GAPS * np.ptp(rows))


def _fitted_texts(block: RowBlock, train: Rows, name: str, good: Flags, categorical: bool) -> InputColumn | str:
    """Return a column of categories or dates, or why it is not used."""
    whole = block.cells(name)
    if whole.take(train).null_count == len(train):
        return "is empty"
    dates = looks_like_dates(whole, block.source.options.date_format)
    if categorical or not dates.all():
        if not categorical:
            _reject_half_numbers(block, name, whole, good, dates)
        return _category(categories(block, name).take(train), name)
    moments = date_parts(block, name)[train]
    return "is empty" if np.isnan(moments).all() else DateColumn.fit(name, moments)


def _category(column: Any, name: str) -> CategoryColumn | str:
    """Return the categories of the training part: those that occur twice, or the most frequent of very many."""
    counts = {each["values"]: each["counts"] for each in column.value_counts().to_pylist() if each["values"] is not None}
    known, rows = [value for value, count in counts.items() if count > 1], len(column) - column.null_count
    if len(counts) == 1 and not column.null_count:
        return "is always the same"
    if not known or (len(counts) > 20 and 2 * len(counts) > rows):
        return f"has {counted(len(counts), 'different text')} in {counted(rows, 'row')} (texts to classify by: --text)"
    values = sorted(sorted(known, key=lambda value: (-counts[value], value))[:_MOST_PLACES])
    return CategoryColumn(name, tuple(values), unknown=len(values) < len(counts), missing=column.null_count > 0)


def _reject_half_numbers(block: RowBlock, name: str, cells: Any, good: Flags, dates: Flags) -> None:
    """Raise if texts are clearly meant as numbers or dates: as categories they would be useless."""
    from pyarrow import compute

    empty = cells.is_null().to_numpy(zero_copy_only=False)
    filled = int((~empty).sum())
    number, date = int(np.argmin(good)), int(np.argmin(dates))
    share = {how: compute.sum(compute.match_substring_regex(cells, how)).as_py() / filled for how in (_COMMA, _OTHER_DATE)}
    if (dates & ~empty).sum() > _MOST_OF * filled:
        row, what = date, f"{shown(cells[date].as_py())} is not a date. Write dates like 2024-12-31, or pass --date-format."
    elif share[_OTHER_DATE] > _MOST_OF:
        like = "Write dates like 2024-12-31, or say how they are written, like --date-format %d.%m.%Y."
        row, what = number, f"{shown(cells[number].as_py())} looks like a date. {like}"
    elif share[_COMMA] > 0.5 or (good & ~empty).sum() > _MOST_OF * filled:
        row, what = number, number_problem(cells[number].as_py(), block.source.options.decimal)
    else:
        return
    error = block.problem(what, row, name)
    error.add_note(f"Or leave the column out, --ignore {name}, or take it for categories, --categorical {name}.")
    raise error
