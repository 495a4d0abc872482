"""Excel workbooks (.xlsx) as tables: the first sheet."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime, time
from pathlib import Path
from typing import Any, final

from calibayes.extras import require_package
from calibayes.tables.options import TableOptions
from calibayes.tables.table_file import RecordFile
from calibayes.wording import shown

__all__ = ["ExcelFile"]

_DAMAGE = (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, OSError, SyntaxError, IndexError, AttributeError)


@final
class ExcelFile(RecordFile):
    """The first sheet of a workbook, with the values that its formulas had when it was saved."""

    row_noun = "row"

    def __init__(self, path: Path, options: TableOptions) -> None:
        super().__init__(path, options)
        first = next(self._rows(), None)
        if first is None:
            raise self.problem("the first sheet is empty. Put the table into it, with a header row.")
        self._header_row = first[0]
        self.set_names(first[1], f"row {first[0]}")
        if next(self.records(), None) is None:
            raise self.problem("there is a header, but no row below it. Write one row for each example.")

    def records(self) -> Iterator[tuple[int, Sequence[str | None]]]:
        """Yield each row: its number in the sheet and its cells."""
        width = len(self.names)
        for number, cells in self._rows():
            if self.options.header and number <= self._header_row:
                continue
            if len(cells) > width:
                hint = "Give every column a name, or clear the cells beside the table."
                raise self.wrong_width(len(cells), f"row {number}", hint)
            yield number, [*cells, *[None] * (width - len(cells))]

    def _rows(self) -> Iterator[tuple[int, list[str | None]]]:
        """Yield the rows that are not blank, each up to its last cell that is not, with their numbers in the sheet."""
        openpyxl = require_package("openpyxl", "An .xlsx file", "excel")
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
