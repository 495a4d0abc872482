"""Delimited text files (.csv, .tsv, .txt, also gzipped) as a table of columns."""

from __future__ import annotations

import codecs
import math
import zlib
from array import array
from collections.abc import Iterator, Sequence
from gzip import BadGzipFile
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from calibayes.data.predictions.csv_rows import (
    find_layout,
    is_number,
    is_utf8,
    open_bytes,
    open_lines,
    records,
    unclosed_quote,
)
from calibayes.data.predictions.lending import Lending
from calibayes.data.predictions.source import Contents, Floats, Ints, TextColumn
from calibayes.data.predictions.wording import complaint, counted, problem, shown

__all__ = ["CsvFile"]


class CsvFile:
    """A delimited text file with a header.

    Arrow reads it, on several cores. When Arrow refuses something, the file is read again cell by cell, either to say
    where the trouble is or, where there is none (a row longer than a block, say), to get the same result slowly.

    Args:
        path: the file.
        delimiter: what stands between two cells; found from the first rows if None.
    """

    def __init__(self, path: Path, delimiter: str | None = None) -> None:
        self._path = path
        self._found: tuple[int, int, list[str]] | None = None
        try:
            self._layout = find_layout(path, delimiter)
        except (EOFError, BadGzipFile, zlib.error) as error:
            raise self._torn(error) from None
        self._places = {name: place for place, name in enumerate(self.names)}

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._layout.names

    def where(self, row: int, column: str) -> str:
        """The line on which data row ``row`` starts, and the column."""
        return f"line {self._record(row)[0]}, column {shown(column)}"

    def cell(self, row: int, column: str) -> str:
        """The text of a cell."""
        return self._record(row)[1][self._places[column]]

    def numeric(self) -> frozenset[str]:
        """The columns that hold numbers in at least half of the first rows, so that one bad cell is found and named."""
        rows = [cells for cells in self._layout.sample if len(cells) == len(self.names)]
        counts = [sum(is_number(cells[j]) for cells in rows) for j in range(len(self.names))]
        return frozenset(
            name for name, count in zip(self.names, counts, strict=True) if name.strip() and 2 * count >= len(rows) > 0
        )

    def head(self, columns: Sequence[str]) -> Floats:
        """The first rows of some columns, NaN where a cell is not a number."""
        places = [self._places[column] for column in columns]
        rows = [cells for cells in self._layout.sample if len(cells) == len(self.names)]
        values = [[float(cells[j]) if is_number(cells[j]) else np.nan for j in places] for cells in rows]
        return np.array(values, dtype=np.float64).reshape(len(rows), len(places))

    def head_labels(self, column: str) -> tuple[str, ...]:
        """The distinct texts in the first rows of a column."""
        place = self._places[column]
        return tuple(dict.fromkeys(cells[place] for cells in self._layout.sample if len(cells) == len(self.names)))

    def read(self, texts: Sequence[str], numbers: Sequence[str]) -> Contents:
        """Some columns whole."""
        from pyarrow import ArrowException

        try:
            try:
                stream = open_bytes(self._path)
                stream.seek(self._layout.offset)
                # Arrow leaves out a byte order mark where it begins: so it gets one that is none of the file's.
                with Lending(stream, codecs.BOM_UTF8) as file:
                    contents = self._fast(file, texts, numbers)
                    # Quotation marks come in pairs, but also alone inside a cell (5" of rain): that takes a closer look.
                    suspect = file.quotes % 2 == 1
            except ArrowException:
                contents, suspect = self._slow(texts, numbers), True
            line = unclosed_quote(self._path, self._layout) if suspect else None
        except (EOFError, BadGzipFile, zlib.error) as error:
            raise self._torn(error) from None
        if line is not None:
            raise problem(self._path, "a quotation mark is opened and never closed. Close it.", where=f"line {line}")
        return contents

    def _fast(self, file: Lending, texts: Sequence[str], numbers: Sequence[str]) -> Contents:
        import pyarrow as pa
        from pyarrow import csv

        # Columns go by their place: names may be odd, and unused ones may repeat.
        place = {name: str(self._places[name]) for name in (*texts, *numbers)}
        types = {place[name]: pa.string() for name in texts} | {place[name]: pa.float64() for name in numbers}
        longest = max(sum(map(len, cells)) for cells in self._layout.sample)
        table = csv.read_csv(
            file.lend(),
            read_options=csv.ReadOptions(
                column_names=[str(j) for j in range(len(self.names))], block_size=max(1 << 20, 16 * longest)
            ),
            parse_options=csv.ParseOptions(delimiter=self._layout.delimiter, newlines_in_values=True),
            # No text stands for "missing": a class may well be called NA, and an empty number is an error.
            convert_options=csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False
            ),
        )
        values = np.empty((table.num_rows, len(numbers)))
        for j, name in enumerate(numbers):
            values[:, j] = table.column(place[name]).to_numpy()
        return Contents({name: _coded(table.column(place[name])) for name in texts}, values)

    def _slow(self, texts: Sequence[str], numbers: Sequence[str]) -> Contents:
        """The same as `_fast`, or the error that says where the trouble is."""
        text_places = [(name, self._places[name]) for name in texts]
        number_places = [self._places[name] for name in numbers]
        codes: dict[str, array[int]] = {name: array("q") for name in texts}
        values: dict[str, dict[str, int]] = {name: {} for name in texts}
        flat = array("d")
        for line, cells in self._records():
            if len(cells) != len(self.names):
                raise self._wrong_width(line, cells)
            for name, place in text_places:
                if not is_utf8(cells[place]):
                    what = f"{shown(cells[place])} is not UTF-8. Save the file as UTF-8."
                    raise problem(self._path, what, where=f"line {line}, column {shown(name)}")
                codes[name].append(values[name].setdefault(cells[place], len(values[name])))
            chosen = [cells[place] for place in number_places]
            row = _numbers(chosen)
            if row is None:
                name, cell = next(pair for pair in zip(numbers, chosen, strict=True) if not is_number(pair[1]))
                raise problem(self._path, complaint(cell), where=f"line {line}, column {shown(name)}")
            flat.extend(row)
        columns = {name: TextColumn(np.array(codes[name], dtype=np.int64), tuple(values[name])) for name in texts}
        return Contents(columns, np.array(flat, dtype=np.float64).reshape(-1, len(numbers)) if numbers else np.empty((0, 0)))

    def _wrong_width(self, line: int, cells: list[str]) -> Exception:
        mark = self._layout.delimiter
        what = f"the row has {counted(len(cells), 'cell')}, but the header has {counted(len(self.names), 'column')}: "
        what += shown(mark.join(cells)) + ". "
        if len(cells) > len(self.names):
            what += f"Put cells that hold a {shown(mark)} in quotes; write numbers with a decimal point."
        else:
            what += "Is the row cut off, or a quotation mark not closed?"
        return problem(self._path, what, where=f"line {line}")

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        with open_lines(open_bytes(self._path)) as lines:
            for _ in islice(lines, self._layout.lines):
                pass
            yield from records(self._path, lines, self._layout.delimiter, self._layout.lines)

    def _record(self, row: int) -> tuple[int, list[str]]:
        if self._found is None or self._found[0] != row:
            line, cells = next(islice(self._records(), row, None))
            self._found = (row, line, cells)
        return self._found[1:]

    def _torn(self, error: Exception) -> Exception:
        return problem(self._path, f"the gzip file is damaged or cut off ({shown(error)}). Write or copy it again.")


def _numbers(cells: list[str]) -> list[float] | None:
    """The numbers in some cells, None if one of them holds none."""
    try:
        values = list(map(float, cells))
    except ValueError:
        return None
    # Python's float also takes 1_000, nan and digits of other scripts; most rows need no look at each cell.
    text = "".join(cells)
    plain = text.isascii() and "_" not in text and math.isfinite(sum(values))
    return values if plain or all(map(is_number, cells)) else None


def _coded(column: Any) -> TextColumn:
    coded = column.dictionary_encode().combine_chunks()
    codes: Ints = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return TextColumn(codes, tuple(coded.dictionary.to_pylist()))
