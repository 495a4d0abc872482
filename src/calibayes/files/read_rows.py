"""Read the rows of a user's data: a table in a file, a folder with a subfolder for each class, or one image."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibayes.checks import positive_integer
from calibayes.data.data_folder import visible
from calibayes.randomness import derived_seed
from calibayes.tables import RowBlock, TableOptions, UnnamedRows, open_table
from calibayes.tables.formats import check_regular, file_problem, is_utf8, named_errors
from calibayes.wording import listed, shown

__all__ = ["FILE", "LABEL", "TEXT", "folder_blocks", "joined_blocks", "labelled_files", "read_rows", "row_blocks"]

FILE, LABEL, TEXT = "file", "label", "text"  # the columns of a folder
_IMAGES = (".png", ".jpg", ".jpeg")
_TEXTS = (".txt", ".text", ".md", "")
_FOLDER_ROWS = 1024
_MOST_BYTES = 2 << 30
_SPARE_ROWS = 8192


def row_blocks(path: Path, options: TableOptions | None = None) -> Generator[RowBlock, None, None]:
    """Yield the rows of a file or folder as texts, in blocks of at most 8,192 rows.

    In every format, a cell is the text that a CSV file would have, so that all formats give the same results.
    """
    options = options or TableOptions()
    if path.is_dir():
        yield from folder_blocks(path, options)
    elif _is_image(path) and path.exists():
        check_regular(path)
        yield RowBlock(_text_table({FILE: [_file_name(path)]}), np.arange(1), UnnamedRows(path, options))
    else:
        with closing(open_table(path, options).blocks()) as blocks:
            for block in blocks:
                yield from block.slices()


def read_rows(
    path: Path, options: TableOptions | None = None, *, max_rows: int | None = None, seed: int = 0
) -> tuple[RowBlock, int]:
    """Read a file or folder, and return its rows and their number.

    With ``max_rows``, return at most that many, drawn by ``seed``; memory is that of the rows that are kept.
    """
    most = None if max_rows is None else positive_integer("max_rows", max_rows)
    generator = np.random.default_rng(derived_seed(seed, "rows"))
    kept: list[RowBlock] = []
    keys: list[npt.NDArray[np.float64]] = []
    total = kept_rows = size = 0
    with closing(row_blocks(path, options)) as blocks:
        for block in blocks:
            rows = len(block.rows)
            kept.append(block)
            keys.append(generator.random(rows))
            total, kept_rows, size = total + rows, kept_rows + rows, size + block.table.nbytes
            if most is not None and kept_rows > 2 * most + _SPARE_ROWS:
                kept, keys = _drawn(kept, keys, most)
                kept_rows, size = most, kept[0].table.nbytes
            if size > _MOST_BYTES:
                what = f"more than {_MOST_BYTES >> 30} GiB after {total:,} rows, too much to train on at once. Train on "
                what += f"{'fewer rows' if most else 'some of them, drawn at random'}, for example --max-rows {kept_rows // 2}."
                raise file_problem(path, what)
    if not total:
        raise file_problem(path, "there are no rows. Write one for each example.")
    if most is not None:
        kept, _ = _drawn(kept, keys, most)
    return joined_blocks(kept), total


def _drawn(kept: list[RowBlock], keys: list[Any], most: int) -> tuple[list[RowBlock], list[Any]]:
    """Return the rows with the ``most`` smallest keys, in their order; doing so early does not change the final draw."""
    every = np.concatenate(keys)
    chosen = np.sort(np.argsort(every, kind="stable")[:most])
    return [joined_blocks(kept).take(chosen)], [every[chosen]]


def joined_blocks(blocks: list[RowBlock]) -> RowBlock:
    """Return the rows of several blocks of one source."""
    import pyarrow as pa

    table = pa.concat_tables([block.table for block in blocks]).combine_chunks()
    return RowBlock(table, np.concatenate([block.rows for block in blocks]), blocks[0].source)


def _text_table(columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array(cells, pa.large_string()) for name, cells in columns.items()})


def folder_blocks(folder: Path, options: TableOptions) -> Iterator[RowBlock]:
    """Yield the files of a folder as rows: the path and class of each, and the contents of texts."""
    files = labelled_files(folder)
    texts = _folder_kind(folder, files) == "texts"
    for begin in range(0, len(files), _FOLDER_ROWS):
        part = files[begin : begin + _FOLDER_ROWS]
        for path, _ in part:
            check_regular(path)
        columns: dict[str, Any] = {FILE: [_file_name(path) for path, _ in part], LABEL: [label for _, label in part]}
        if texts:
            columns[TEXT] = [_contents(path, options.encoding) for path, _ in part]
        yield RowBlock(_text_table(columns), np.arange(begin, begin + len(part)), UnnamedRows(folder, options))


def labelled_files(folder: Path) -> list[tuple[Path, str | None]]:
    """Return the files of a folder, each with its class: the folder right below ``folder`` that it is in, if any."""
    files: list[tuple[Path, str | None]] = []
    try:
        for entry in visible(folder):
            inside = sorted(path for path in entry.rglob("*") if _is_visible(path, entry)) if entry.is_dir() else [entry]
            broken = next((path for path in inside if not path.exists()), None)
            if broken is not None:
                raise file_problem(broken, "this is a link to something that is not there. Remove it.")
            label = entry.name if entry.is_dir() else None
            files += [(path, label) for path in inside if not path.is_dir()]
    except OSError as error:
        raise file_problem(folder, f"the folder cannot be read ({shown(error.strerror or error)}).") from None
    if not files:
        raise file_problem(folder, "there is nothing in this folder. Put a folder for each class into it.")
    return files


def _is_visible(path: Path, folder: Path) -> bool:
    """Return True if neither a file nor a folder that it is in is hidden, like those that notebooks leave behind."""
    return not any(part.startswith(".") for part in path.relative_to(folder).parts)


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in _IMAGES


def _file_name(path: Path) -> str:
    if not is_utf8(str(path)):
        raise file_problem(path, "this name is not UTF-8 text. Rename it.")
    return str(path)


def _folder_kind(folder: Path, files: list[tuple[Path, str | None]]) -> Literal["images", "texts"]:
    """Return the kind of a folder's files; raise if they are neither images nor texts, or both."""
    images = [path for path, _ in files if _is_image(path)]
    others = [path for path, _ in files if not _is_image(path)]
    for path in others:
        if path.suffix.lower() not in _TEXTS and not path.suffix[1:].isdigit():  # a number is not an ending
            what = f"{shown(path.relative_to(folder))} is neither an image ({', '.join(_IMAGES)}) nor a text (.txt). Remove it."
            raise file_problem(folder, what)
    if images and others:
        both = listed(path.relative_to(folder) for path in (images[0], others[0]))
        raise file_problem(folder, f"there are images and texts, like {both}. Keep them in separate folders.")
    return "images" if images else "texts"


def _contents(path: Path, encoding: str) -> str:
    with named_errors(path, encoding):
        return path.read_text(encoding=encoding)
