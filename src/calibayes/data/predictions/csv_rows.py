"""The lines and records of a delimited text file, one at a time: how its layout is found, and where a value stands."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, cast

from calibayes.data.predictions.wording import listed, problem, shown

__all__ = ["Layout", "find_layout", "is_number", "is_utf8", "open_bytes", "open_lines", "records", "unclosed_quote"]

_DELIMITERS = (",", ";", "\t")
_LONGEST_CELL = 1 << 30
_SAMPLE_LINES, _SAMPLE_CHARACTERS = 1000, 1_000_000
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*", re.ASCII)
# Spreadsheets write such a first line to say which delimiter follows.
_SEPARATOR_LINE = re.compile(r"sep=([,;\t])\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """How a delimited file is laid out.

    Attributes:
        delimiter: what stands between two cells.
        names: the header.
        offset: how many bytes stand before the first data row.
        lines: how many lines stand before the first data row.
        sample: the cells of the first data rows.
    """

    delimiter: str
    names: tuple[str, ...]
    offset: int
    lines: int
    sample: tuple[list[str], ...]


def open_bytes(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked if they are gzipped (whatever the name of the file)."""
    stream = path.open("rb")
    if stream.read(2) == b"\x1f\x8b":
        stream.close()
        return cast("IO[bytes]", gzip.open(path, "rb"))
    stream.seek(0)
    return stream


def open_lines(stream: IO[bytes], encoding: str = "utf-8") -> TextIOWrapper:
    """The lines of a stream, ended by LF, CRLF or CR. What is not UTF-8 comes as surrogates, for `is_utf8` to find."""
    return TextIOWrapper(stream, encoding=encoding, errors="surrogateescape", newline="")


def is_utf8(text: str) -> bool:
    """Whether a text came from valid UTF-8."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def is_number(cell: str) -> bool:
    """Whether a cell holds a finite number, written as the fast reader understands it."""
    return _NUMBER.fullmatch(cell) is not None


def records(path: Path, lines: Iterable[str], delimiter: str, before: int = 0) -> Iterator[tuple[int, list[str]]]:
    """The cells of each record that is not blank, and the line it starts on.

    Args:
        path: the file, for messages.
        lines: its lines, or those after the first ``before``.
        delimiter: what stands between two cells.
        before: how many lines were left out.
    """
    reader = csv.reader(lines, delimiter=delimiter)
    # The limit of the csv module is for all its readers; a long text beside the probabilities may well exceed it.
    limit = csv.field_size_limit(_LONGEST_CELL)
    line = before + 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = before + reader.line_num + 1
    except csv.Error as error:
        what = f"the row cannot be read ({error}). Is a quotation mark opened there and not closed?"
        raise problem(path, what, where=f"line {line}") from None
    finally:
        csv.field_size_limit(limit)


def unclosed_quote(path: Path, layout: Layout, encoding: str = "utf-8") -> int | None:
    """The line of a quotation mark that is never closed, so that it swallows the rest of the file; None if there is none."""
    end = "the end"
    with open_lines(open_bytes(path), encoding) as lines:
        for _ in islice(lines, layout.lines):
            pass
        last: tuple[int, list[str]] = (0, [])
        for last in records(path, _then(lines, end), layout.delimiter, layout.lines):  # noqa: B007
            pass
    return None if last[1] == [end] else last[0]


def _then(lines: Iterable[str], end: str) -> Iterator[str]:
    yield from lines
    # A last line without a line end must not run into the sentinel.
    yield "\n"
    yield end


def find_layout(path: Path, delimiter: str | None, *, encoding: str = "utf-8", least: int = 2) -> Layout:
    """The delimiter, the header (of at least so many columns) and the first rows of a file."""
    head, whole = _head(path, encoding)
    size, skipped = 0, 0
    if head and head[0].startswith("\ufeff"):
        size, head[0] = len("\ufeff".encode()), head[0][1:]
    if head and (separator := _SEPARATOR_LINE.fullmatch(head[0])):
        delimiter = delimiter or separator[1]
        size, skipped, head = size + len(head[0].encode()), 1, head[1:]
    candidates = {mark: _parse(path, head, mark, skipped, whole) for mark in ([delimiter] if delimiter else _DELIMITERS)}
    mark = max(candidates, key=lambda mark: _fit([cells for _, cells in candidates[mark]]))
    rows = candidates[mark]
    if not rows:
        raise problem(path, "the file is blank. Write a header line and one line for each example.")
    header = rows[0][1]
    bad = next((name for name in header if not is_utf8(name)), None)
    if bad is not None:
        raise problem(path, f"the column name {shown(bad)} is not UTF-8. Save the file as UTF-8.", where=f"line {rows[0][0]}")
    if len(header) < least:
        looked = f"no {shown(delimiter)}" if delimiter else "no comma, semicolon or tab"
        what = (
            f"there is {looked} in the header {shown(header[0])}, so there is one column only. Name the delimiter: --delimiter."
        )
        raise problem(path, what, where=f"line {rows[0][0]}")
    _check_names(path, header, rows[0][0])
    consumed = _header_lines(head, mark)
    size += sum(len(line.encode(errors="surrogateescape")) for line in head[:consumed])
    sample = tuple(cells for _, cells in rows[1:])
    if not sample:
        what = f"there is a header ({listed(header)}), but no row below it. Write one line for each example."
        raise problem(path, what)
    return Layout(mark, tuple(header), size, skipped + consumed, sample)


def _header_lines(head: list[str], delimiter: str) -> int:
    """How many lines end with the header: blank ones above it count, and a quoted name may span several."""
    reader = csv.reader(head, delimiter=delimiter)
    next(filter(None, reader))
    return reader.line_num


def _head(path: Path, encoding: str) -> tuple[list[str], bool]:
    """The first lines of a file, and whether they are the whole of it."""
    head: list[str] = []
    characters = 0
    with open_lines(open_bytes(path), encoding) as lines:
        for line in lines:
            # A header and one row are needed, however long they are.
            if len(head) >= 3 and (len(head) >= _SAMPLE_LINES or characters >= _SAMPLE_CHARACTERS):
                return head, False
            head.append(line)
            characters += len(line)
    return head, True


def _parse(path: Path, head: list[str], delimiter: str, before: int, whole: bool) -> list[tuple[int, list[str]]]:
    rows = list(records(path, head, delimiter, before))
    # The last record of a part of the file may be cut short inside quotes.
    return rows if whole or len(rows) < 3 else rows[:-1]


def _fit(rows: list[list[str]]) -> tuple[bool, bool, int, int]:
    """How well a delimiter explains the rows: a table, with rows of one length, that holds numbers, in many columns."""
    if not rows:
        return False, False, 0, 0
    width = len(rows[0])
    same = all(len(cells) == width for cells in rows)
    numbers = sum(is_number(cell) or _DECIMAL_COMMA.fullmatch(cell) is not None for cells in rows[1:] for cell in cells)
    return width > 1, same, numbers, width


def _check_names(path: Path, header: list[str], line: int) -> None:
    named = [name for name in header if name.strip()]
    repeated = next((name for name in named if named.count(name) > 1), None) if len(set(named)) < len(named) else None
    if repeated is None:
        return
    if all(is_number(name) for name in named):
        what = f"the first line, {listed(header)}, looks like data. Write a header line above it, like label,p_cat,p_dog."
        raise problem(path, what, where=f"line {line}")
    places = [str(place) for place, name in enumerate(header, 1) if name == repeated]
    what = f"the column name {shown(repeated)} stands {len(places)} times (columns {', '.join(places)}). Rename all but one."
    raise problem(path, what, where=f"line {line}")
