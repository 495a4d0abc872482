"""Delimited text files (.csv, .tsv, .txt, also gzipped) as tables.

Arrow parses whole records, block by block, from memory: it never calls back into Python, so none of its threads is left with a
Python object when the process ends. What Arrow rejects is read again by the csv module, which knows the line.
"""

from __future__ import annotations

import codecs
from collections.abc import Generator, Iterator, Sequence, Set
from contextlib import closing
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, final

import numpy as np

from calibayes.tables.delimited_layout import csv_records, find_layout
from calibayes.tables.formats import file_problem, named_errors, open_bytes, open_lines
from calibayes.tables.options import TableOptions
from calibayes.tables.table_file import RowBlock, TableFile, record_blocks
from calibayes.wording import shown

__all__ = ["DelimitedFile", "record_end"]

_READ_BYTES = 1 << 24
_ARROW_BYTES, _ARROW_BYTES_PER_COLUMN = 1 << 20, 1 << 10  # parsed at a time by one thread; more for wide tables
_QUOTE, _LINE_ENDS = ord('"'), b"\n\r"
_END = "the end"


@final
class DelimitedFile(TableFile):
    """A delimited text file, with or without a header."""

    def __init__(self, path: Path, options: TableOptions) -> None:
        super().__init__(path, options)
        with named_errors(path, options.encoding):
            self._layout = find_layout(path, options)
        self.set_names(self._layout.header, f"line {self._layout.line}")
        self._places = {name: place for place, name in enumerate(self.names)}
        self._last_record: tuple[int, int, list[str]] | None = None

    @cached_property
    def sample(self) -> Sequence[Sequence[str | None]]:
        return [cells for cells in self._layout.sample if len(cells) == len(self.names)]

    def row_name(self, row: int) -> str:
        return f"line {self._record(row)[0]}"

    def cell(self, row: int, column: str) -> str:
        return self._record(row)[1][self._places[column]]

    def blocks(self, columns: Sequence[str] | None = None, numbers: Set[str] = frozenset()) -> Generator[RowBlock, None, None]:
        wanted, first = self.chosen(columns), 0
        with named_errors(self.path, self.options.encoding), closing(self._whole_records()) as parts:
            for data in parts:
                table = None if data is None else self._parsed(data, wanted, numbers)
                if table is None:
                    yield from record_blocks(self, self._checked_records(first), wanted, numbers, first)
                    return
                yield self.block(table, first, numbers)
                first += table.num_rows

    def _whole_records(self) -> Generator[bytes | None, None, None]:
        """Yield UTF-8 bytes of whole records; None, and nothing after it, where the csv module has to look closer."""
        rest, delimiter, skip = b"", self._layout.delimiter.encode(), self._layout.offset
        try:
            with closing(_utf8_parts(self.path, self.options.encoding)) as parts:
                for part in parts:
                    data, skip = rest + part[skip:], max(0, skip - len(part))
                    end = record_end(data, delimiter)
                    if end is None:
                        yield None
                        return
                    if end:
                        yield data[:end]
                    rest = data[end:]
        except UnicodeError:
            yield None
            return
        if rest:
            end = record_end(rest + b"\n", delimiter)
            yield rest if end == len(rest) + 1 else None

    def _parsed(self, data: bytes, columns: Sequence[str], numbers: Set[str]) -> Any:
        """Return whole records as an Arrow table, numbers as texts where one of them is odd; None if Arrow rejects them."""
        import pyarrow as pa
        from pyarrow import csv

        # Columns go by their place: names may be odd, and unused ones may repeat.
        places = {str(self._places[name]): name for name in columns}
        # Arrow drops a byte order mark where it starts to read: one that belongs to a cell is hidden behind another.
        data = codecs.BOM_UTF8 + data if data.startswith(codecs.BOM_UTF8) else data
        floats = {name for name in columns if name in numbers}
        usual = max(_ARROW_BYTES, _ARROW_BYTES_PER_COLUMN * len(self.names))
        for as_numbers, size in ((floats, usual), (set[str](), usual), (set[str](), len(data) + 1)):
            types = {place: pa.float64() if name in as_numbers else pa.large_string() for place, name in places.items()}
            try:
                table = csv.read_csv(
                    pa.BufferReader(data),
                    # Arrow's own threads abort the process if it ends right after a table is read, as after a wrong option.
                    read_options=csv.ReadOptions(
                        use_threads=False, column_names=[str(k) for k in range(len(self.names))], block_size=size
                    ),
                    parse_options=csv.ParseOptions(delimiter=self._layout.delimiter, newlines_in_values=b'"' in data),
                    convert_options=csv.ConvertOptions(
                        column_types=types,
                        include_columns=list(types),
                        null_values=[],
                        strings_can_be_null=False,
                        decimal_point=self.options.decimal,
                    ),
                )
                return table.rename_columns(list(columns))
            except (pa.ArrowException, ValueError):  # ValueError: a delimiter that is more than one byte
                continue
        return None

    def _checked_records(self, first: int) -> Iterator[list[str]]:
        """Yield the cells of the rows from ``first`` on, as many in each as there are columns."""
        for row, (line, cells) in enumerate(self._records()):
            if row >= first:
                if len(cells) != len(self.names):
                    raise self.wrong_width(len(cells), f"line {line}", self._width_hint(cells))
                yield cells

    def _width_hint(self, cells: list[str]) -> str:
        mark = self._layout.delimiter
        hint = "Is it cut off, or a quotation mark not closed?"
        if len(cells) > len(self.names):
            hint = f"Put cells that hold a {shown(mark)} in quotes, write numbers with a decimal point, or pass --delimiter."
        return f"It is {shown(mark.join(cells))}. {hint}"

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each row with its line; a quotation mark that is never closed is an error at the end."""
        with named_errors(self.path, self.options.encoding), open_lines(self.path, self.options.encoding) as lines:
            if self._layout.offset and not self._layout.lines:
                lines.read(1)  # the byte order mark
            for _ in islice(lines, self._layout.lines):
                pass
            before: tuple[int, list[str]] | None = None
            # A line end first: a last line without one must not run into the sentinel.
            for record in csv_records(self.path, chain(lines, ["\n", _END]), self._layout.delimiter, self._layout.lines):
                if before is not None:
                    yield before
                before = record
            if before is not None and before[1] != [_END]:
                raise file_problem(self.path, "a quotation mark is opened and never closed. Close it.", f"line {before[0]}")

    def _record(self, row: int) -> tuple[int, list[str]]:
        if self._last_record is None or self._last_record[0] != row:
            line, cells = next(islice(self._records(), row, None))
            self._last_record = (row, line, cells)
        return self._last_record[1:]


def record_end(data: bytes, delimiter: bytes) -> int | None:
    """Return how many bytes of ``data``, which starts with a record, are whole records; None if its quotes are irregular.

    Quotes are regular if each opening one follows a delimiter or a line end, and each closing one precedes one: then every
    second quote opens, and the end of a record is known without parsing it.

    Examples:
        >>> record_end(b'a,"b\\nc"\\nd,"e\\n', b",")
        8
    """
    values = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(values == _QUOTE) if b'"' in data else np.empty(0, dtype=np.int64)
    if not len(quotes):
        return _last_line_end(data, 0, len(data))
    borders = np.frombuffer(delimiter + _LINE_ENDS + b'"', dtype=np.uint8)
    opening, closing = quotes[::2], quotes[1::2]
    before, after = values[opening[opening > 0] - 1], values[closing[closing + 1 < len(values)] + 1]
    if not (np.isin(before, borders).all() and np.isin(after, borders).all()):
        return None
    last = len(data) if len(opening) == len(closing) else int(opening[-1])
    # Quotes that are next to each other are one inside a cell: no line ends there.
    for start, end in zip(chain(closing[::-1], [-1]), chain([last], opening[: len(closing)][::-1]), strict=True):
        if found := _last_line_end(data, int(start) + 1, int(end)):
            return found
    return 0


def _last_line_end(data: bytes, start: int, end: int) -> int:
    """Return the place after the last line end between two places, 0 if there is none; a CR at the very end may go on."""
    return max(data.rfind(b"\n", start, end), data.rfind(b"\r", start, min(end, len(data) - 1))) + 1


def _utf8_parts(path: Path, encoding: str) -> Generator[bytes, None, None]:
    """Yield the bytes of a text file, unpacked and in UTF-8."""
    with open_bytes(path) as stream:
        if encoding in ("utf-8", "ascii"):
            while data := stream.read(_READ_BYTES):
                yield data
            return
        decoder = codecs.getincrementaldecoder(encoding)()
        while data := stream.read(_READ_BYTES):
            yield decoder.decode(data).encode()
        yield decoder.decode(b"", final=True).encode()
