"""Excel workbooks (.xlsx) as tables: the first sheet."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Generator, Iterator, Sequence, Set
from contextlib import closing
from datetime import datetime, time
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, final

from calibayes.extras import package
from calibayes.tables.options import TableOptions
from calibayes.tables.table_file import SAMPLE_ROWS, RowBlock, TableFile, record_blocks
from calibayes.wording import shown

__all__ = ["ExcelFile"]

_DAMAGE = (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, OSError, SyntaxError, IndexError, AttributeError)


@final
class ExcelFile(TableFile):
    """The first sheet of a workbook, with the values that its formulas had when it was saved.

    Args:
        path: the file.
        options: how numbers and dates that were typed as texts are written.
    """

    def __init__(self, path: Path, options: TableOptions) -> None:
        super().__init__(path, options)
        first = next(self._rows(), None)
        if first is None:
            raise self.problem("the first sheet is empty. Put the table into it, with a header row.")
        self._header_row = first[0]
        self.set_names(first[1], f"row {first[0]}")
        if next(self._records(), None) is None:
            raise self.problem("there is a header, but no row below it. Write one row for each example.")

    @cached_property
    def sample(self) -> Sequence[Sequence[str | None]]:
        """The cells of the first rows."""
        return [cells for _, cells in islice(self._records(), SAMPLE_ROWS)]

    def row_name(self, row: int) -> str:
        """Return the row as the sheet numbers it."""
        return f"row {next(islice(self._data_rows(), row, None))[0]}"

    def cell(self, row: int, column: str) -> str:
        """Return the text of a cell."""
        return next(islice(self._records(), row, None))[1][self.names.index(column)] or ""

    def blocks(self, columns: Sequence[str] | None = None, numbers: Set[str] = frozenset()) -> Generator[RowBlock, None, None]:
        """Yield all rows in blocks."""
        yield from record_blocks(self, (cells for _, cells in self._records()), columns, numbers)

    def _records(self) -> Iterator[tuple[int, list[str | None]]]:
        width = len(self.names)
        for place, (number, cells) in enumerate(self._data_rows()):
            if len(cells) > width:
                raise self.wrong_width(len(cells), place, "Give every column a name, or clear the cells beside the table.")
            yield number, [*cells, *[None] * (width - len(cells))]

    def _data_rows(self) -> Iterator[tuple[int, list[str | None]]]:
        return (row for row in self._rows() if not self.options.header or row[0] > self._header_row)

    def _rows(self) -> Iterator[tuple[int, list[str | None]]]:
        """Yield the rows that are not blank, each up to its last cell that is not, with their numbers in the sheet."""
        openpyxl = package("openpyxl", "An .xlsx file", "excel")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about features of the workbook that are not read
                workbook = openpyxl.load_workbook(self.path, read_only=True, data_only=True)
            with closing(workbook):
                for number, values in enumerate(workbook.worksheets[0].iter_rows(values_only=True), 1):
                    cells = [self._cell(value) for value in values]
                    while cells and cells[-1] is None:
                        cells.pop()
                    if cells:
                        yield number, cells
        except _DAMAGE as error:
            raise self.problem(f"this is not a whole .xlsx file ({shown(error)}). Write or copy it again.") from None

    def _cell(self, value: Any) -> str | None:
        """Return a value as a CSV file would have it."""
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return repr(int(value) if value.is_integer() and abs(value) < 1e15 else value).replace(".", self.options.decimal)
        if isinstance(value, datetime) and value.time() == time():
            return value.date().isoformat()
        return str(value)
