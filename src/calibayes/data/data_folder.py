"""The folder of the data sets on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from calibayes.errors import InvalidArgumentError, MissingDataError

__all__ = ["data_folder", "required", "visible"]


def data_folder(folder: str | Path | None = None) -> Path:
    """The folder that holds the data sets: ``folder``, or ``CALIBAYES_DATA``, or ``calibayes`` in the user's cache.

    The user's cache is ``XDG_CACHE_HOME``, or ``~/.cache`` where that is not set.

    Args:
        folder: overrides the variables of the environment.

    Examples:
        >>> data_folder("/data/sets").as_posix()
        '/data/sets'
    """
    if folder is not None:
        return _expanded(folder)
    chosen = os.environ.get("CALIBAYES_DATA")
    if chosen:
        return _expanded(chosen)
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says that a relative path in this variable is to be ignored.
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "calibayes"


def required(path: Path, name: str, title: str) -> Path:
    """``path``, or a `MissingDataError` that says how to get it.

    Args:
        path: a file or folder of the data set.
        name: what ``calibayes data get`` calls the data set.
        title: what people call it.
    """
    if not path.exists():
        raise MissingDataError(
            f"{title} is not here: there is no {str(path)!r}. Download it with `calibayes data get {name}`, "
            "or set CALIBAYES_DATA to the folder that holds it."
        )
    return path


def visible(folder: Path) -> list[Path]:
    """Return the files and folders in a folder, sorted, without the hidden files that file managers leave there."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _expanded(folder: str | Path) -> Path:
    try:
        return Path(folder).expanduser()
    except RuntimeError as error:
        raise InvalidArgumentError(f"Expected the folder of data sets to exist, but got {str(folder)!r}. {error}") from error
