"""Parquet files as a table of columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibayes.data.predictions.source import Contents, Floats, TextColumn
from calibayes.data.predictions.texts import as_text
from calibayes.data.predictions.wording import missing, problem, shown

__all__ = ["ParquetFile"]

_HEAD = 1000


class ParquetFile:
    """A Parquet file; its columns may be of any type of numbers or texts.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        from pyarrow import ArrowException, parquet

        self._path = path
        try:
            self._schema: Any = parquet.read_schema(path)
            self._rows = int(parquet.read_metadata(path).num_rows)
        except (ArrowException, OSError) as error:
            raise self._torn(error) from None
        repeated = [name for name, count in Counter(self._schema.names).items() if count > 1]
        if repeated:
            raise problem(path, f"there is more than one column {shown(repeated[0])}. Rename all but one.")
        if not self._rows:
            raise problem(path, "there are columns, but no rows. Write one row for each example.")

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._schema.names)

    def where(self, row: int, column: str) -> str:
        """The row, counted from 1, and the column."""
        return f"row {row + 1}, column {shown(column)}"

    def cell(self, row: int, column: str) -> str:
        """The value as a text."""
        return as_text(self._read([column]).column(column)[row].as_py())

    def numeric(self) -> frozenset[str]:
        """The columns of a numeric type."""
        return frozenset(name for name in self.names if name.strip() and self._is_number(name))

    def head(self, columns: Sequence[str]) -> Floats:
        """The first rows of some columns of numbers, NaN where there is none."""
        first = self._first(columns)
        return np.stack([_floats(first.column(column)) for column in columns], axis=1)

    def head_labels(self, column: str) -> tuple[str, ...]:
        """The distinct values in the first rows of a column, as texts."""
        return tuple(dict.fromkeys(as_text(value) for value in self._first([column]).column(column).to_pylist()))

    def read(self, texts: Sequence[str], numbers: Sequence[str]) -> Contents:
        """Some columns whole."""
        for name in numbers:
            if not self._is_number(name):
                what = f"the column holds {shown(self._schema.field(name).type)}, not numbers. Store it as numbers, like 0.25."
                raise problem(self._path, what, where=f"column {shown(name)}")
        table = self._read([*texts, *numbers])
        missing_in = next((name for name in (*texts, *numbers) if table.column(name).null_count), None)
        if missing_in is not None:
            row = int(np.argmax(table.column(missing_in).is_null().to_numpy()))
            raise problem(self._path, missing(""), where=self.where(row, missing_in))
        values = np.empty((self._rows, len(numbers)))
        for j, name in enumerate(numbers):
            values[:, j] = _floats(table.column(name))
        return Contents({name: self._text(table.column(name), name) for name in texts}, values)

    def _text(self, column: Any, name: str) -> TextColumn:
        from pyarrow import types

        if types.is_nested(column.type):
            what = f"the column holds {shown(column.type)}. Store one value in each row."
            raise problem(self._path, what, where=f"column {shown(name)}")
        if types.is_dictionary(column.type):
            # Categories may be there without an example.
            column = column.cast(column.type.value_type)
        coded = column.dictionary_encode().combine_chunks()
        codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return TextColumn(codes, tuple(as_text(value) for value in coded.dictionary.to_pylist()))

    def _read(self, columns: Sequence[str]) -> Any:
        """The columns, and perhaps others: a name with a point in it also stands for fields inside columns."""
        from pyarrow import ArrowException, parquet

        try:
            with parquet.ParquetFile(self._path) as file:
                return file.read(columns=list(columns))
        except (ArrowException, OSError) as error:
            raise self._torn(error) from None

    def _first(self, columns: Sequence[str]) -> Any:
        """The first rows of some columns."""
        from pyarrow import ArrowException, parquet

        try:
            with parquet.ParquetFile(self._path) as file:
                return next(file.iter_batches(_HEAD, columns=list(columns)))
        except (ArrowException, OSError) as error:
            raise self._torn(error) from None

    def _is_number(self, name: str) -> bool:
        from pyarrow import types

        kind = self._schema.field(name).type
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))

    def _torn(self, error: Exception) -> Exception:
        what = f"this is not a whole Parquet file ({shown(error)}). Write or copy it again."
        return problem(self._path, what)


def _floats(column: Any) -> Floats:
    import pyarrow as pa

    values: Floats = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    return values
