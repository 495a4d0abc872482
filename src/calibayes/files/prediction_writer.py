"""Write a table block by block; it appears when it is complete."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

from calibayes.atomic_file import atomic_file
from calibayes.errors import DataError
from calibayes.tables.formats import file_problem
from calibayes.wording import shown_path

__all__ = ["prediction_writer"]

Write = Callable[[dict[str, Any]], None]
_ENDINGS = (".csv", ".parquet")


@contextmanager
def prediction_writer(path: Path) -> Iterator[Write]:
    """Yield a function that adds rows to a CSV or Parquet file, given as columns: arrays of numbers, or of texts (``object``).

    The file appears, complete, when all went well; otherwise an earlier file stays.
    """
    if path.suffix.lower() not in _ENDINGS:
        raise file_problem(path, f"expected a name that ends in {' or '.join(_ENDINGS)}.")
    with ExitStack() as stack:
        try:
            unfinished = stack.enter_context(atomic_file(path))
        except OSError as error:
            raise DataError(f"{shown_path(path)} cannot be written: {error.strerror or error}.") from None
        file = stack.enter_context(unfinished.open("wb"))
        with _parquet(file) if path.suffix.lower() == ".parquet" else _csv(file) as write:
            yield write


@contextmanager
def _csv(file: Any) -> Iterator[Write]:
    stream = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    rows = csv.writer(stream, lineterminator="\n")
    begun = False

    def write(columns: dict[str, Any]) -> None:
        nonlocal begun
        if not begun:
            rows.writerow(columns)
            begun = True
        rows.writerows(zip(*map(_texts, columns.values()), strict=True))

    try:
        yield write
    finally:
        stream.detach()  # the file is closed by whoever opened it


def _texts(column: Any) -> Any:
    """Write numbers with six significant digits."""
    return column.tolist() if column.dtype == object else map(format, column.tolist(), repeat(".6g"))


@contextmanager
def _parquet(file: Any) -> Iterator[Write]:
    import pyarrow as pa
    from pyarrow import parquet

    writer: Any = None

    def write(columns: dict[str, Any]) -> None:
        nonlocal writer
        kinds = {name: pa.string() if column.dtype == object else pa.float64() for name, column in columns.items()}
        table = pa.table({name: pa.array(column, kinds[name]) for name, column in columns.items()})
        if writer is None:
            writer = parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()
