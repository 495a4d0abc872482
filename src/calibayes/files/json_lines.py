"""JSON lines (.jsonl, .ndjson, also gzipped): an object on each line, as tables of texts."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from gzip import BadGzipFile
from itertools import islice
from pathlib import Path
from typing import Any

from calibayes.data.predictions.csv_rows import is_utf8, open_bytes, open_lines
from calibayes.data.predictions.wording import shown, shown_path
from calibayes.errors import DataError

__all__ = ["json_tables"]

_ROWS = 4096


def json_tables(path: Path, *, encoding: str = "utf-8") -> Iterator[Any]:
    """The objects of a file as Arrow tables whose cells are texts, in constant memory.

    Every object has the names of the first, or fewer; a value that is missing or null is missing.
    """
    import pyarrow as pa

    names: list[str] = []
    objects = _objects(path, encoding)
    while rows := list(islice(objects, _ROWS)):
        names = names or [_cell(name, path, rows[0][0], name) or "" for name in rows[0][1]]
        columns: dict[str, list[str | None]] = {name: [] for name in names}
        for line, row in rows:
            extra = next((name for name in row if name not in columns), None)
            if extra is not None:
                raise _wrong(path, line, f"{shown(extra)} is not among the names of the first object. Give it null there.")
            for name in names:
                columns[name].append(_cell(row.get(name), path, line, name))
        yield pa.table({name: pa.array(cells, pa.large_string()) for name, cells in columns.items()})


def _objects(path: Path, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    with open_lines(open_bytes(path), encoding) as lines:
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                text = line.strip().removeprefix("\ufeff")
                if not text:
                    continue
                if not is_utf8(text):
                    raise _wrong(path, number, f"this is no {encoding} text. Name its encoding: --encoding.")
                found = json.loads(text)
                if not isinstance(found, dict) or not found:
                    raise _wrong(path, number, f"expected an object with names, but got {shown(text)}.")
                yield number, found
        except UnicodeError as error:
            raise _wrong(path, number, f"this is no {encoding} text ({error}). Name its encoding: --encoding.") from None
        except (ValueError, RecursionError) as error:
            if isinstance(error, DataError):
                raise
            raise _wrong(path, number, f"this is no JSON ({error}). Write one object on each line.") from None
        except (EOFError, BadGzipFile, zlib.error) as error:
            raise _wrong(path, number, f"the gzip file is damaged or cut off ({shown(error)}).") from None


def _cell(value: Any, path: Path, line: int, name: str) -> str | None:
    """A value as a CSV file would have it."""
    if value is None or value != value:  # null, or NaN
        return None
    if isinstance(value, str):
        if not is_utf8(value):
            raise _wrong(path, line, f"{shown(name)} holds half a character, {shown(value)}. Write it whole, or leave it out.")
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    what = f"{shown(name)} holds a {'list' if isinstance(value, list) else 'nested object'}. Give it one value."
    raise _wrong(path, line, what)


def _wrong(path: Path, line: int, what: str) -> DataError:
    return DataError(f"{shown_path(path)}, line {line}: {what}")
