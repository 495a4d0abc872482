"""JSON lines (.jsonl, .ndjson, also gzipped) as tables: an object on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

from calibayes.errors import DataError
from calibayes.tables.formats import file_problem, is_utf8, named_errors, open_lines, other_encoding
from calibayes.tables.options import TableOptions
from calibayes.tables.table_file import RecordFile
from calibayes.wording import shown

__all__ = ["JsonLinesFile"]


@final
class JsonLinesFile(RecordFile):
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
        """Yield each row: its line and its cells."""
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
                    raise self._wrong(number, f"this is not {encoding} text. {other_encoding(encoding)}")
                try:
                    value = json.loads(text)
                except (ValueError, RecursionError) as error:
                    raise self._wrong(number, f"this is not JSON ({error}). Write one object on each line.") from None
                if not isinstance(value, dict) or not value:
                    raise self._wrong(number, f"expected an object with names, but got {shown(text)}.")
                yield number, value

    def _cell(self, value: Any, line: int, name: str) -> str | None:
        """Return a value as a CSV file would have it."""
        if value is None or value != value:  # null, or NaN
            return None
        if isinstance(value, str):
            if not is_utf8(value):
                what = f"{shown(name)} holds half a character, {shown(value)}. Write it whole, or leave it out."
                raise self._wrong(line, what)
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return repr(value).replace(".", self.options.decimal)
        what = f"{shown(name)} holds a {'list' if isinstance(value, list) else 'nested object'}. Give it one value."
        raise self._wrong(line, what)

    def _wrong(self, line: int, what: str) -> DataError:
        return file_problem(self.path, what, f"line {line}")
