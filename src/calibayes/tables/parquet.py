"""Parquet files and frames as tables."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence, Set
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from calibayes.errors import DataError
from calibayes.tables.formats import is_utf8
from calibayes.tables.options import TableOptions
from calibayes.tables.table_file import SAMPLE_ROWS, RowBlock, RowSource, TableFile, UnnamedRows
from calibayes.wording import shown

__all__ = ["ParquetTable", "frame_block"]

_BATCH_ROWS = 1 << 16


@final
class ParquetTable(TableFile):
    """A Parquet file, with columns of any type of numbers, dates or texts."""

    def __init__(self, path: Path, options: TableOptions) -> None:
        from pyarrow import parquet

        super().__init__(path, options)
        with self._whole():
            self._schema: Any = parquet.read_schema(path)
            rows = int(parquet.read_metadata(path).num_rows)
        self.set_names(self._schema.names)
        if not rows:
            raise self.problem("there are columns, but no rows. Write one row for each example.")

    @cached_property
    def sample(self) -> Sequence[Sequence[str | None]]:
        from pyarrow import types

        names = [name for name in self.names if not types.is_nested(self._schema.field(name).type)]
        for batch in self._batches(names, SAMPLE_ROWS):
            cells = {name: texts(batch.column(name), name, self).to_pylist() for name in names}
            empty: list[str | None] = [None] * batch.num_rows
            return list(zip(*(cells.get(name, empty) for name in self.names), strict=True))
        return []

    def row_name(self, row: int) -> str:
        return f"row {row + 1}"

    def cell(self, row: int, column: str) -> str:
        for batch in self._batches([column]):
            if row < batch.num_rows:
                value = batch.column(column)[row].as_py()
                return "" if value is None else value if isinstance(value, str) else repr(value)
            row -= batch.num_rows
        raise IndexError(row)

    def blocks(self, columns: Sequence[str] | None = None, numbers: Set[str] = frozenset()) -> Generator[RowBlock, None, None]:
        import pyarrow as pa

        wanted, first = self.chosen(columns), 0
        for name in wanted:
            if name in numbers and not self._is_number(name):
                what = f"the column holds {shown(self._schema.field(name).type)}, not numbers. Store it as numbers, like 0.25."
                raise self.problem(what, column=name)
        for batch in self._batches(wanted):
            columns_read = {
                name: batch.column(name).cast(pa.float64(), safe=False).fill_null(np.nan)
                if name in numbers
                else texts(batch.column(name), name, self)
                for name in wanted
            }
            yield self.block(pa.table(columns_read), first)
            first += batch.num_rows

    def _batches(self, columns: Sequence[str], rows: int = _BATCH_ROWS) -> Iterator[Any]:
        """Yield the columns, and perhaps others: a name with a dot in it also matches fields inside columns."""
        from pyarrow import parquet

        with self._whole(), parquet.ParquetFile(self.path) as file:
            yield from file.iter_batches(rows, columns=list(columns))

    @contextmanager
    def _whole(self) -> Iterator[None]:
        from pyarrow import ArrowException

        try:
            yield
        except (ArrowException, OSError) as error:
            raise self.problem(f"this is not a complete Parquet file ({shown(error)}). Write or copy it again.") from None

    def _is_number(self, name: str) -> bool:
        from pyarrow import types

        kind = self._schema.field(name).type
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def frame_block(frame: Any, options: TableOptions | None = None) -> RowBlock:
    """Return a pandas frame, an Arrow table or a dict of columns as rows of texts."""
    import pyarrow as pa

    source = UnnamedRows(None, options or TableOptions())
    try:
        if isinstance(frame, dict):
            frame = pa.table({str(name): pa.array(cells) for name, cells in frame.items()})
        table = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, AttributeError, TypeError) as error:
        got = f"{type(frame).__name__} ({shown(error)})"
        raise DataError(f"Expected a pandas frame, an Arrow table or a dict of columns, but got {got}.") from None
    names = [name for name in table.column_names if name.strip()]
    repeated = next((name for name in names if table.schema.get_field_index(name) < 0), None)
    if repeated is not None:
        raise source.problem(f"there is more than one column {shown(repeated)}. Rename all but one.")
    columns = {name: texts(table.column(name), name, source) for name in names}
    return RowBlock(pa.table(columns), np.arange(table.num_rows), source)


def texts(column: Any, name: str, source: RowSource) -> Any:
    """Return an Arrow column of any type as texts as in a CSV file; null where there is nothing."""
    import pyarrow as pa
    from pyarrow import compute, types

    if types.is_nested(column.type):
        raise source.problem(f"the column holds {shown(column.type)}. Store one value in each row.", column=name)
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_binary(column.type) or types.is_large_binary(column.type) or types.is_fixed_size_binary(column.type):
        cells = [None if value is None else value.decode("utf-8", "surrogateescape") for value in column.to_pylist()]
        bad = next((cell for cell in cells if cell is not None and not is_utf8(cell)), None)
        if bad is not None:
            what = f"the column holds bytes that are not UTF-8 text, {shown(bad)}. Store texts in it."
            raise source.problem(what, column=name)
        return pa.array(cells, pa.large_string())
    if not types.is_floating(column.type):
        return column.cast(pa.large_string())
    cells = compute.if_else(compute.is_nan(column), None, column).cast(pa.large_string())
    decimal = source.options.decimal
    return cells if decimal == "." else compute.replace_substring(cells, ".", decimal)
