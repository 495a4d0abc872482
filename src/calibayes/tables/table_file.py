"""A table in a file: its column names, its rows in blocks, and where each cell is, for messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from calibayes.errors import DataError
from calibayes.tables.formats import file_problem, is_utf8, not_in_encoding
from calibayes.tables.numbers import is_number, number_problem, parse_numbers
from calibayes.tables.options import TableOptions
from calibayes.wording import counted, listed, shown

__all__ = ["SAMPLE_ROWS", "RowBlock", "RowSource", "TableFile", "UnnamedRows", "record_blocks", "trimmed"]

Ints = npt.NDArray[np.int64]

SAMPLE_ROWS = 1000
_BLOCK_ROWS = 8192


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Rows of a table, and where they come from."""

    table: Any  # an Arrow table: texts as a CSV file would have them, null where there is nothing, or float64
    rows: Ints  # the number of each row in its source, counted from 0
    source: RowSource

    def cells(self, name: str) -> Any:
        """Return a column as an Arrow array of texts without surrounding blanks; null where there is nothing."""
        return trimmed(self.table.column(name).combine_chunks())

    def take(self, places: Ints) -> RowBlock:
        """Return some of the rows."""
        return RowBlock(self.table.take(places), self.rows[places], self.source)

    def slices(self, rows: int = _BLOCK_ROWS) -> Iterator[RowBlock]:
        """Yield the rows in blocks of at most ``rows``."""
        for begin in range(0, len(self.rows), rows):
            yield RowBlock(self.table.slice(begin, rows), self.rows[begin : begin + rows], self.source)

    def problem(self, what: str, place: int, column: str) -> DataError:
        """Return the error to raise for the cell in row ``place`` of this block."""
        return self.source.problem(what, int(self.rows[place]), column)


class RowSource(ABC):
    """The source of some rows, a file or folder unless ``path`` is None: it knows the place of each cell."""

    column_noun = "column"

    def __init__(self, path: Path | None, options: TableOptions) -> None:
        self.path, self.options = path, options

    @abstractmethod
    def row_name(self, row: int) -> str:
        """Return the name of row ``row`` (counted from 0) in messages, counted from 1: ``line 17``."""

    @final
    def where(self, row: int | None = None, column: str | None = None) -> str:
        """Return the place of a row, a column or a cell: ``line 17, column 'p_cat'``."""
        named = [] if column is None else [f"{self.column_noun} {shown(column)}"]
        return ", ".join([*([] if row is None else [self.row_name(row)]), *named])

    @final
    def problem(self, what: str, row: int | None = None, column: str | None = None) -> DataError:
        """Return the error to raise for what is wrong, in a row, a column or a cell."""
        where = self.where(row, column)
        if self.path is not None:
            return file_problem(self.path, what, where)
        return DataError(f"{where[:1].upper()}{where[1:]}: {what}" if where else what[:1].upper() + what[1:])


@final
class UnnamedRows(RowSource):
    """Rows that are known by their number only: those of a frame, or of a folder."""

    def row_name(self, row: int) -> str:
        return f"row {row + 1:,}"


class TableFile(RowSource):
    """A table in a file."""

    path: Path
    names: tuple[str, ...]  # of all columns; those with a blank name cannot be read

    @cached_property
    @abstractmethod
    def sample(self) -> Sequence[Sequence[str | None]]:
        """The cells of the first rows."""

    @abstractmethod
    def cell(self, row: int, column: str) -> str:
        """Return the text of a cell."""

    @abstractmethod
    def blocks(self, columns: Sequence[str] | None = None, numbers: Set[str] = frozenset()) -> Generator[RowBlock, None, None]:
        """Yield all rows in blocks, in constant memory.

        Args:
            columns: the columns to read; by default all that have a name.
            numbers: those among them that hold numbers: they come as float64, NaN where one is missing.
        """

    @final
    def chosen(self, columns: Sequence[str] | None) -> list[str]:
        """Return the columns to read."""
        return [name for name in self.names if name.strip()] if columns is None else list(columns)

    @final
    def block(self, table: Any, first: int, numbers: Set[str] = frozenset()) -> RowBlock:
        """Return a block of rows that starts at row ``first``, with texts in the columns ``numbers`` turned into numbers."""
        import pyarrow as pa

        rows = RowBlock(table, np.arange(first, first + table.num_rows), self)
        names = [name for name in table.column_names if name in numbers and table.column(name).type != pa.float64()]
        if not names:
            return rows
        parsed = parse_numbers([table.column(name) for name in names], self.options.decimal)
        if (bad := parsed.first_bad()) is not None:
            row, name = bad[0], names[bad[1]]
            raise rows.problem(number_problem(table.column(name)[row].as_py(), self.options.decimal), row, name)
        new = dict(zip(names, parsed.values.T, strict=True))
        return RowBlock(pa.table({name: new.get(name, table.column(name)) for name in table.column_names}), rows.rows, self)

    @final
    def set_names(self, header: Sequence[str | None], where: str = "") -> None:
        """Take the names from a header, or number the columns if the file has none."""
        if not self.options.header:
            self.names = tuple(f"column{place}" for place in range(1, len(header) + 1))
            return
        self.names = tuple("" if name is None else name for name in header)
        named = [name for name in self.names if name.strip()]
        if len(set(named)) == len(named):
            return
        if all(map(is_number, named)):
            what = f"the first line, {listed(header)}, looks like data. Write a header line above it, or pass --no-header."
            raise file_problem(self.path, what, where)
        repeated = next(name for name, count in Counter(named).items() if count > 1)
        places = [str(place) for place, name in enumerate(self.names, 1) if name == repeated]
        what = f"the column name {shown(repeated)} occurs {len(places)} times (columns {', '.join(places)}). "
        raise file_problem(self.path, what + "Rename all but one.", where)

    @final
    def wrong_width(self, cells: int, where: str, hint: str) -> DataError:
        """Return the error to raise for a row that is longer or shorter than the header."""
        first = "header" if self.options.header else "first row"
        what = f"the row has {counted(cells, 'cell')}, but the {first} has {counted(len(self.names), 'column')}. {hint}"
        return file_problem(self.path, what, where)


def trimmed(cells: Any) -> Any:
    """Return an Arrow array of texts without surrounding blanks; null where nothing is left."""
    from pyarrow import compute

    texts = compute.utf8_trim_whitespace(cells)
    return compute.if_else(compute.equal(texts, ""), None, texts)


def record_blocks(
    source: TableFile, records: Iterator[Sequence[str | None]], columns: Sequence[str] | None, numbers: Set[str], first: int = 0
) -> Iterator[RowBlock]:
    """Yield rows that come one at a time, each with a cell for every name, in blocks; the first is row ``first``."""
    import pyarrow as pa

    places = {name: place for place, name in enumerate(source.names)}
    wanted = source.chosen(columns)
    while rows := list(islice(records, _BLOCK_ROWS)):
        cells = {name: [row[places[name]] for row in rows] for name in wanted}
        try:
            table = pa.table({name: pa.array(column, pa.large_string()) for name, column in cells.items()})
        except UnicodeEncodeError:
            row, name, cell = next(
                (row, name, column[row])
                for row in range(len(rows))
                for name, column in cells.items()
                if not is_utf8(column[row] or "")
            )
            raise source.problem(not_in_encoding(shown(cell), source.options.encoding), first + row, name) from None
        yield source.block(table, first, numbers)
        first += len(rows)
