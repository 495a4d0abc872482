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
        from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]

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
        return as_text(self._column(column)[row].as_py())

    def numeric(self) -> frozenset[str]:
        """The columns of a numeric type."""
        return frozenset(name for name in self.names if name.strip() and self._is_number(name))

    def head(self, columns: Sequence[str]) -> Floats:
        """The first rows of some columns of numbers, NaN where there is none."""
        return np.stack([_floats(self._column(column).slice(0, _HEAD)) for column in columns], axis=1)

    def head_labels(self, column: str) -> tuple[str, ...]:
        """The distinct values in the first rows of a column, as texts."""
        return tuple(dict.fromkeys(as_text(value) for value in self._column(column).slice(0, _HEAD).to_pylist()))

    def read(self, texts: Sequence[str], numbers: Sequence[str]) -> Contents:
        """Some columns whole."""
        values = np.empty((self._rows, len(numbers)))
        for j, name in enumerate(numbers):
            if not self._is_number(name):
                what = f"the column holds {shown(self._schema.field(name).type)}, not numbers. Store it as numbers, like 0.25."
                raise problem(self._path, what, where=f"column {shown(name)}")
            column = self._column(name)
            if column.null_count:
                raise self._missing(column, name)
            values[:, j] = _floats(column)
        return Contents({name: self._text(name) for name in texts}, values)

    def _text(self, name: str) -> TextColumn:
        import pyarrow as pa

        column = self._column(name)
        if column.null_count:
            raise self._missing(column, name)
        if pa.types.is_nested(column.type):
            what = f"the column holds {shown(column.type)}. Store one value in each row."
            raise problem(self._path, what, where=f"column {shown(name)}")
        coded = column.dictionary_encode().combine_chunks()
        values = coded.dictionary.to_pylist()
        texts = tuple(as_text(value) for value in values)
        return TextColumn(coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), texts)

    def _column(self, name: str) -> Any:
        import pyarrow as pa
        from pyarrow import ArrowException, parquet

        try:
            # A name with a point in it also selects nested fields, so the column is picked out of what was read.
            column = parquet.read_table(self._path, columns=[name]).column(name)
        except (ArrowException, OSError) as error:
            raise self._torn(error) from None
        return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column

    def _is_number(self, name: str) -> bool:
        from pyarrow import types

        kind = self._schema.field(name).type
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))

    def _missing(self, column: Any, name: str) -> Exception:
        row = int(np.argmax(column.is_null().to_numpy()))
        return problem(self._path, missing(""), where=self.where(row, name))

    def _torn(self, error: Exception) -> Exception:
        what = f"this is not a whole Parquet file ({shown(error)}). Write or copy it again."
        return problem(self._path, what)


def _floats(column: Any) -> Floats:
    import pyarrow as pa

    values: Floats = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    return values
