"""Write a table block by block; it appears when it is complete."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from calibayes.atomic_file import atomic_file
from calibayes.errors import DataError
from calibayes.tables.formats import file_problem
from calibayes.wording import shown_path

__all__ = ["check_ending", "formatted", "prediction_writer"]

Write = Callable[[Sequence[str], bytes], None]
_ENDINGS = (".csv", ".parquet")
_QUOTED = re.compile('[",\r\n]')


def check_ending(path: Path) -> str:
    """Return the ending of a file to write, ``.csv`` or ``.parquet``, or raise."""
    if path.suffix.lower() not in _ENDINGS:
        raise file_problem(path, f"expected a name that ends in {' or '.join(_ENDINGS)}.")
    return path.suffix.lower()


def formatted(columns: dict[str, Any], ending: str) -> bytes:
    """Return rows, given as arrays of numbers or of texts (``object``), as lines of a CSV file or a stream of Arrow.

    Examples:
        >>> import numpy as np
        >>> formatted({"name": np.array(["a", "b,c"], dtype=object), "p": np.array([0.5, 1 / 3])}, ".csv")
        b'a,0.5\\n"b,c",0.333333\\n'
    """
    return _arrow_stream(columns) if ending == ".parquet" else _csv_lines(columns)


@contextmanager
def prediction_writer(path: Path) -> Iterator[Write]:
    """Yield a function that adds rows to a CSV or Parquet file: the names of the columns, and what `formatted` returned.

    The file appears, complete, when all went well; otherwise an earlier file stays.
    """
    ending = check_ending(path)
    with ExitStack() as stack:
        try:
            unfinished = stack.enter_context(atomic_file(path))
        except OSError as error:
            raise DataError(f"{shown_path(path)} cannot be written: {error.strerror or error}.") from None
        file = stack.enter_context(unfinished.open("wb"))
        with _parquet(file) if ending == ".parquet" else _csv(file) as write:
            yield write


@contextmanager
def _csv(file: Any) -> Iterator[Write]:
    begun = False

    def write(names: Sequence[str], content: bytes) -> None:
        nonlocal begun
        if not begun:
            file.write((",".join(map(_csv_cell, names)) + "\n").encode())
            begun = True
        file.write(content)

    yield write


def _csv_lines(columns: dict[str, Any]) -> bytes:
    """Write numbers with six significant digits; one format for a whole row takes half the time of one for each cell."""
    cells = [_csv_texts(column.tolist()) if column.dtype == object else column.tolist() for column in columns.values()]
    row = ",".join("%s" if column.dtype == object else "%.6g" for column in columns.values()) + "\n"
    return "".join(map(row.__mod__, zip(*cells, strict=True))).encode()


def _csv_texts(texts: list[str]) -> list[str]:
    return list(map(_csv_cell, texts)) if _QUOTED.search("".join(texts)) else texts


def _csv_cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


@contextmanager
def _parquet(file: Any) -> Iterator[Write]:
    import pyarrow as pa
    from pyarrow import parquet

    writer: Any = None

    def write(names: Sequence[str], content: bytes) -> None:
        nonlocal writer
        with pa.ipc.open_stream(content) as stream:
            table = stream.read_all()
        if writer is None:
            writer = parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _arrow_stream(columns: dict[str, Any]) -> bytes:
    import pyarrow as pa

    kinds = {name: pa.string() if column.dtype == object else pa.float64() for name, column in columns.items()}
    table = pa.table({name: pa.array(column, kinds[name]) for name, column in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
