"""A folder with a folder for each class, which holds its images or texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from calibayes.data.data_folder import visible
from calibayes.errors import DataError
from calibayes.tables import RowBlock, TableOptions, UnnamedRows
from calibayes.tables.formats import check_regular, is_utf8, named_errors
from calibayes.wording import listed, shown, shown_path

__all__ = ["FILE", "LABEL", "TEXT", "file_name", "folder_blocks", "folder_kind", "is_image", "labelled_files"]

FILE, LABEL, TEXT = "file", "label", "text"
_IMAGES = (".png", ".jpg", ".jpeg")
_TEXTS = (".txt", ".text", ".md", "")
_ROWS = 1024


def is_image(path: Path) -> bool:
    """Whether the name of a file is that of an image."""
    return path.suffix.lower() in _IMAGES


def labelled_files(folder: Path) -> list[tuple[Path, str | None]]:
    """The images or texts of a folder, each with its class: the folder right below ``folder`` that it lies in, if any."""
    found: list[tuple[Path, str | None]] = []
    try:
        for entry in visible(folder):
            inside = sorted(path for path in entry.rglob("*") if _is_visible(path, entry)) if entry.is_dir() else [entry]
            lost = next((path for path in inside if not path.exists()), None)
            if lost is not None:
                raise DataError(f"{shown_path(lost)}: this is a link to something that is not there. Take it out.")
            label = entry.name if entry.is_dir() else None
            found += [(path, label) for path in inside if not path.is_dir()]
    except OSError as error:
        raise DataError(f"{shown_path(folder)}: the folder cannot be read ({shown(error.strerror or error)}).") from None
    if not found:
        raise DataError(f"{shown_path(folder)}: there is nothing in this folder. Put a folder for each class into it.")
    return found


def _is_visible(path: Path, folder: Path) -> bool:
    """Whether neither a file nor a folder that it lies in is hidden, such as those that notebooks leave behind."""
    return not any(part.startswith(".") for part in path.relative_to(folder).parts)


def file_name(path: Path) -> str:
    """A path as a text, or an error if no file could hold it."""
    if not is_utf8(str(path)):
        raise DataError(f"{shown_path(path)}: this name is no UTF-8 text. Rename it.")
    return str(path)


def folder_kind(folder: Path, files: list[tuple[Path, str | None]]) -> Literal["images", "texts"]:
    """What a folder holds; what is neither, or both together, is refused."""
    other = next((path for path, _ in files if not is_image(path) and not _is_text(path)), None)
    if other is not None:
        what = f"{shown(other.relative_to(folder))} is neither an image ({', '.join(_IMAGES)}) nor a text (.txt)."
        raise DataError(f"{shown_path(folder)}: {what} Take it out.")
    images = [path for path, _ in files if is_image(path)]
    if images and len(images) < len(files):
        text = next(path for path, _ in files if not is_image(path))
        both = listed(path.relative_to(folder) for path in (images[0], text))
        raise DataError(f"{shown_path(folder)}: there are images and texts, like {both}. Keep them in folders of their own.")
    return "images" if images else "texts"


def _is_text(path: Path) -> bool:
    """Whether a name ends like that of a text; a number is no ending at all."""
    return path.suffix.lower() in _TEXTS or path.suffix[1:].isdigit()


def folder_blocks(folder: Path, options: TableOptions) -> Iterator[RowBlock]:
    """Yield the files of a folder as rows: where each lies, its class, and for texts what it says."""
    import pyarrow as pa

    files = labelled_files(folder)
    texts = folder_kind(folder, files) == "texts"
    for begin in range(0, len(files), _ROWS):
        part = files[begin : begin + _ROWS]
        for path, _ in part:
            check_regular(path)
        columns = {FILE: [file_name(path) for path, _ in part], LABEL: [label for _, label in part]}
        if texts:
            columns[TEXT] = [_text(path, options.encoding) for path, _ in part]
        table = pa.table({name: pa.array(cells, pa.large_string()) for name, cells in columns.items()})
        yield RowBlock(table, np.arange(begin, begin + len(part)), UnnamedRows(folder, options))


def _text(path: Path, encoding: str) -> str:
    with named_errors(path, encoding):
        return path.read_text(encoding=encoding)
