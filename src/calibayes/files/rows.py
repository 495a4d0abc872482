"""The rows of a user's data: a table in a file, a folder with a folder for each class, or one image."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibayes.checks import positive_integer
from calibayes.errors import DataError
from calibayes.files.folders import FILE, file_name, folder_blocks, is_image
from calibayes.randomness import derived_seed
from calibayes.tables import RowBlock, TableOptions, UnnamedRows, open_table
from calibayes.tables.formats import check_regular
from calibayes.wording import shown_path

__all__ = ["read_rows", "row_blocks"]

_MOST_BYTES = 2 << 30
_SPARE_ROWS = 8192


def row_blocks(path: Path, options: TableOptions | None = None) -> Generator[RowBlock, None, None]:
    """Yield the rows of a file or folder as texts, in blocks of at most 8,192 rows.

    Whatever the format, a cell is what a CSV file would say, so that all formats give the same answer.

    Args:
        path: a table in a file, an image, or a folder with a folder for each class.
        options: how its text is written.
    """
    import pyarrow as pa

    options = options or TableOptions()
    if path.is_dir():
        yield from folder_blocks(path, options)
    elif is_image(path) and path.exists():
        check_regular(path)
        table = pa.table({FILE: pa.array([file_name(path)], pa.large_string())})
        yield RowBlock(table, np.arange(1), UnnamedRows(path, options))
    else:
        with closing(open_table(path, options).blocks()) as blocks:
            for block in blocks:
                yield from block.slices()


def read_rows(
    path: Path, options: TableOptions | None = None, *, max_rows: int | None = None, seed: int = 0
) -> tuple[RowBlock, int]:
    """Read a file whole, or some of its rows; returns them and how many rows the file has.

    Args:
        path: as in `row_blocks`.
        options: as in `row_blocks`.
        max_rows: keep at most so many rows, drawn by ``seed``; memory is that of the rows that are kept.
        seed: of the draw.
    """
    most = None if max_rows is None else positive_integer("max_rows", max_rows)
    generator = np.random.default_rng(derived_seed(seed, "rows"))
    kept: list[RowBlock] = []
    keys: list[npt.NDArray[np.float64]] = []
    total = held = size = 0
    with closing(row_blocks(path, options)) as blocks:
        for block in blocks:
            rows = len(block.rows)
            kept.append(block)
            keys.append(generator.random(rows))
            total, held, size = total + rows, held + rows, size + block.table.nbytes
            if most is not None and held > 2 * most + _SPARE_ROWS:
                kept, keys = _drawn(kept, keys, most)
                held, size = most, kept[0].table.nbytes
            if size > _MOST_BYTES:
                raise DataError(
                    f"{shown_path(path)}: more than {_MOST_BYTES >> 30} GiB after {total:,} rows, too much to train on at "
                    f"once. Train on {'fewer rows' if most else 'some of them, drawn at random'}: --max-rows {held // 2}, say."
                )
    if not total:
        raise DataError(f"{shown_path(path)}: there are no rows. Write one for each example.")
    if most is not None:
        kept, _ = _drawn(kept, keys, most)
    return _joined(kept), total


def _drawn(kept: list[RowBlock], keys: list[Any], most: int) -> tuple[list[RowBlock], list[Any]]:
    """Return the rows with the ``most`` smallest keys, in their order: those that are kept later would be the same."""
    every = np.concatenate(keys)
    chosen = np.sort(np.argsort(every, kind="stable")[:most])
    return [_joined(kept).take(chosen)], [every[chosen]]


def _joined(blocks: list[RowBlock]) -> RowBlock:
    import pyarrow as pa

    table = pa.concat_tables([block.table for block in blocks]).combine_chunks()
    return RowBlock(table, np.concatenate([block.rows for block in blocks]), blocks[0].source)
