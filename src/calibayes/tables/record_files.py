"""JSON lines (.jsonl, .ndjson, also gzipped) and Excel workbooks (.xlsx) as tables: files read row by row."""

from __future__ import annotations

import json
import warnings
import zipfile
from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence, Set
from contextlib import closing
from datetime import datetime, time
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, final

from calibayes.errors import DataError
from calibayes.extras import require_package
from calibayes.tables.formats import file_problem, is_utf8, named_errors, not_in_encoding, open_lines
from calibayes.tables.json_objects import object_of_pairs
from calibayes.tables.numbers import plain_text
from calibayes.tables.options import TableOptions
from calibayes.tables.table_file import SAMPLE_ROWS, RowBlock, TableFile, record_blocks
from calibayes.wording import shown

__all__ = ["ExcelFile", "JsonLinesFile"]

_DAMAGE = (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, OSError, SyntaxError, IndexError, AttributeError)


class _RecordFile(TableFile):
    """A table whose rows come one at a time, each with its number in the file."""

    row_noun: str

    @abstractmethod
    def records(self) -> Iterator[tuple[int, Sequence[str | None]]]:
        """Yield the number of each row in the file, and a cell for every name."""

    @final
    @cached_property
    def sample(self) -> Sequence[Sequence[str | None]]:
        return [cells for _, cells in islice(self.records(), SAMPLE_ROWS)]

    @final
    def row_name(self, row: int) -> str:
        return f"{self.row_noun} {next(islice(self.records(), row, None))[0]}"

    @final
    def cell(self, row: int, column: str) -> str:
        return next(islice(self.records(), row, None))[1][self.names.index(column)] or ""

    @final
    def blocks(self, columns: Sequence[str] | None = None, numbers: Set[str] = frozenset()) -> Generator[RowBlock, None, None]:
        yield from record_blocks(self, (cells for _, cells in self.records()), columns, numbers)


@final
class JsonLinesFile(_RecordFile):
    """A file with a JSON object on each line.

    Every object has the names of the first, or fewer; a value that is not there is missing, as null is.
    """

    row_noun = "line"

    def __init__(self, path: Path, options: TableOptions) -> None:
        super().__init__(path, options)
        first = next(self._objects(), None)
        if first is None:
            raise self.problem("there are no rows. Write one object on each line.")
        self.set_names([self._cell(name, first[0], name) for name in first[1]])
        self._known = set(self.names)

    def records(self) -> Iterator[tuple[int, Sequence[str | None]]]:
        for line, row in self._objects():
            if not row.keys() <= self._known:
                extra = next(name for name in row if name not in self._known)
                raise self._wrong(line, f"{shown(extra)} is not among the names of the first object. Give it null there.")
            yield line, [self._cell(row.get(name), line, name) for name in self.names]

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        encoding = self.options.encoding
        with named_errors(self.path, encoding), open_lines(self.path, encoding) as lines:
            for number, line in enumerate(lines, 1):
                text = line.strip().removeprefix("\ufeff")
                if not text:
                    continue
                if not is_utf8(text):
                    raise self._wrong(number, not_in_encoding("this", encoding))
                try:
                    value = json.loads(text, object_pairs_hook=object_of_pairs)
                except DataError as error:
                    raise self._wrong(number, str(error)) from None
                except (ValueError, RecursionError) as error:
                    raise self._wrong(number, f"this is not JSON ({error}). Write one object on each line.") from None
                if not isinstance(value, dict) or not value:
                    raise self._wrong(number, f"expected an object with names, but got {shown(text)}.")
                yield number, value

    def _cell(self, value: Any, line: int, name: str) -> str | None:
        if value is None or value != value:  # null, or NaN
            return None
        if isinstance(value, str):
            if not is_utf8(value):
                what = f"{shown(name)} holds half a character, {shown(value)}. Write it whole, or leave it out."
                raise self._wrong(line, what)
            return value
        if isinstance(value, int | float):
            return plain_text(value, self.options.decimal)
        what = f"{shown(name)} holds a {'list' if isinstance(value, list) else 'nested object'}. Give it one value."
        raise self._wrong(line, what)

    def _wrong(self, line: int, what: str) -> DataError:
        return file_problem(self.path, what, f"line {line}")


@final
class ExcelFile(_RecordFile):
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
        width = len(self.names)
        for number, cells in self._rows():
            if self.options.header and number <= self._header_row:
                continue
            if len(cells) > width:
                hint = "Give every column a name, or clear the cells beside the table."
                raise self.wrong_width(len(cells), f"row {number}", hint)
            yield number, [*cells, *[None] * (width - len(cells))]

    def _rows(self) -> Iterator[tuple[int, list[str | None]]]:
        """Yield the rows that are not blank, each up to its last filled cell, with their numbers in the sheet."""
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
            raise self.problem(f"this is not a complete .xlsx file ({shown(error)}). Write or copy it again.") from None

    def _cell(self, value: Any) -> str | None:
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        if isinstance(value, bool | float):
            return plain_text(value, self.options.decimal)
        if isinstance(value, datetime) and value.time() == time():
            return value.date().isoformat()
        return str(value)
