"""The layout of a delimited text file: its delimiter, its header and its first rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from calibayes.tables.formats import file_problem, is_utf8, not_in_encoding, open_lines
from calibayes.tables.numbers import is_number
from calibayes.tables.options import TableOptions
from calibayes.tables.table_file import SAMPLE_ROWS
from calibayes.wording import listed, shown

__all__ = ["DelimitedLayout", "csv_records", "find_layout"]

_DELIMITERS = (",", ";", "\t")
_OTHER_DELIMITERS = "| :"
_LONGEST_CELL = 1 << 30
_SAMPLE_CHARACTERS = 1_000_000
# Spreadsheets write such a first line to say which delimiter follows.
_SEPARATOR_LINE = re.compile(r"sep=([,;\t])\s*", re.IGNORECASE)


@dataclass(frozen=True)
class DelimitedLayout:
    """The layout of a delimited file."""

    delimiter: str
    header: tuple[str, ...]  # its cells, or those of the first row where there is no header
    line: int  # of the header
    offset: int  # bytes before the first data row
    lines: int  # before the first data row
    sample: tuple[list[str], ...]  # the cells of the first data rows


def csv_records(path: Path, lines: Iterable[str], delimiter: str, before: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each record that is not blank, and the line it starts on; ``lines`` are those after ``before``."""
    reader = csv.reader(lines, delimiter=delimiter)
    # The limit is shared by all readers of the csv module; a long text beside the numbers may well exceed it.
    limit = csv.field_size_limit(_LONGEST_CELL)
    line = before + 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = before + reader.line_num + 1
    except csv.Error as error:
        what = f"the row cannot be read ({error}). Is a quotation mark opened there and not closed?"
        raise file_problem(path, what, f"line {line}") from None
    finally:
        csv.field_size_limit(limit)


def find_layout(path: Path, options: TableOptions) -> DelimitedLayout:
    """Find the delimiter, the header and the first rows of a file."""
    head, whole = _head(path, options.encoding)
    delimiter, size, skipped = options.delimiter, 0, 0
    if head and head[0].startswith("\ufeff"):
        size, head[0] = len("\ufeff".encode()), head[0][1:]
    if head and (separator := _SEPARATOR_LINE.fullmatch(head[0])):
        delimiter = delimiter or separator[1]
        size, skipped, head = size + len(head[0].encode()), 1, head[1:]
    marks = [delimiter] if delimiter else [mark for mark in _DELIMITERS if mark != options.decimal]
    candidates = {mark: list(csv_records(path, head, mark, skipped)) for mark in marks}
    if not whole:  # the last record of a part of the file may be cut short inside quotes
        candidates = {mark: rows if len(rows) < 3 else rows[:-1] for mark, rows in candidates.items()}
    mark = max(candidates, key=lambda mark: _fit([cells for _, cells in candidates[mark]]))
    rows = candidates[mark]
    if not rows:
        raise file_problem(path, "the file is blank. Write a header line and one line for each example.")
    line, header = rows[0]
    bad = next((name for name in header if not is_utf8(name)), None)
    if bad is not None:
        raise file_problem(path, not_in_encoding(shown(bad), options.encoding), f"line {line}")
    _check_delimiter(path, [cells for _, cells in rows], delimiter, line)
    sample = tuple(cells for _, cells in rows[options.header :])
    if not sample:
        what = f"there is a header ({listed(header)}), but no row below it. Write one line for each example."
        raise file_problem(path, what)
    if options.header:
        # Blank lines above the header count, and a quoted name may span several.
        reader = csv.reader(head, delimiter=mark)
        next(filter(None, reader))
        size += sum(len(line.encode(errors="surrogateescape")) for line in head[: reader.line_num])
        skipped += reader.line_num
    return DelimitedLayout(mark, tuple(header), line, size, skipped, sample)


def _check_delimiter(path: Path, rows: list[list[str]], delimiter: str | None, line: int) -> None:
    """Raise if all rows are one cell, but another delimiter would split each into the same number of cells."""
    if any(len(cells) > 1 for cells in rows):
        return
    for mark in _OTHER_DELIMITERS:
        counts = {cells[0].count(mark) for cells in rows}
        if len(counts) == 1 and counts != {0}:
            missing = f"no {shown(delimiter)}" if delimiter else "no comma, semicolon or tab"
            what = f"there is {missing} in {shown(rows[0][0])}, so there is only one column. "
            raise file_problem(path, what + f"Name the delimiter: --delimiter '{mark}'.", f"line {line}")


def _head(path: Path, encoding: str) -> tuple[list[str], bool]:
    """Return the first lines of a file, and True if they are all of it."""
    head: list[str] = []
    characters = 0
    with open_lines(path, encoding) as lines:
        for line in lines:
            # A header and one row are needed, however long they are.
            if len(head) >= 3 and (len(head) >= SAMPLE_ROWS or characters >= _SAMPLE_CHARACTERS):
                return head, False
            head.append(line)
            characters += len(line)
    return head, True


def _fit(rows: list[list[str]]) -> tuple[bool, bool, int, int]:
    """Rate how well a delimiter explains the rows: a table, with rows of one length, that holds numbers, in many columns."""
    if not rows:
        return False, False, 0, 0
    width = len(rows[0])
    same = all(len(cells) == width for cells in rows)
    numbers = sum(is_number(cell) or is_number(cell, ",") for cells in rows[1:] for cell in cells)
    return width > 1, same, numbers, width
