"""The values of a table's columns: in its first rows, and in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibayes.tables import TableFile
from calibayes.tables.numbers import Floats, is_number

__all__ = ["Ints", "TextColumn", "first_labels", "first_numbers", "numeric_columns", "read_columns"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column of texts: ``values[codes[i]]`` is the text of row ``i``. Every value occurs, and only once in ``values``."""

    codes: Ints
    values: tuple[str, ...]


def numeric_columns(table: TableFile) -> frozenset[str]:
    """Return the columns with numbers in at least half of the first rows, so that a single bad cell is found and named."""
    columns = zip(*table.sample, strict=True) if table.sample else ()
    return frozenset(
        name
        for name, cells in zip(table.names, columns, strict=False)
        if name.strip() and 2 * sum(is_number(cell, table.options.decimal) for cell in cells) >= len(cells)
    )


def first_numbers(table: TableFile, columns: Sequence[str]) -> Floats:
    """Return the first rows of some columns, NaN where a cell is not a number."""
    decimal, places = table.options.decimal, {name: place for place, name in enumerate(table.names)}
    cells = [row[places[name]] for row in table.sample for name in columns]
    values = [float(cell.replace(decimal, ".")) if cell is not None and is_number(cell, decimal) else np.nan for cell in cells]
    return np.array(values, dtype=np.float64).reshape(len(table.sample), len(columns))


def first_labels(table: TableFile, column: str) -> tuple[str, ...]:
    """Return the distinct texts in the first rows of a column."""
    place = table.names.index(column)
    return tuple(dict.fromkeys(row[place] or "" for row in table.sample))


def read_columns(table: TableFile, texts: Sequence[str], numbers: Sequence[str]) -> tuple[dict[str, TextColumn], Floats]:
    """Read all rows of some columns: texts by name, and numbers ``[n, k]``, NaN or infinite where the file says so."""
    import pyarrow as pa

    cells: dict[str, list[object]] = {name: [] for name in texts}
    values: list[Floats] = []
    with closing(table.blocks([*texts, *numbers], set(numbers))) as blocks:
        for block in blocks:
            for name in texts:
                cells[name] += block.table.column(name).chunks
            part = np.empty((len(block.rows), len(numbers)))
            for place, name in enumerate(numbers):
                part[:, place] = block.table.column(name).to_numpy()
            values.append(part)
    columns = {}
    for name, chunks in cells.items():
        coded = pa.chunked_array(chunks, pa.large_string()).fill_null("").dictionary_encode().combine_chunks()
        codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        columns[name] = TextColumn(codes, tuple(coded.dictionary.to_pylist()))
    return columns, np.concatenate(values)
