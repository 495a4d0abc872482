"""The folder of the data sets on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from calibayes.errors import InvalidArgumentError, MissingDataError

__all__ = ["data_folder", "required", "visible"]


def data_folder(folder: str | Path | None = None) -> Path:
    """Return the folder of the data sets: ``folder``, or ``CALIBAYES_DATA``, or ``calibayes`` in the user's cache.

    The user's cache is ``XDG_CACHE_HOME``, or ``~/.cache`` if that is not set.

    Examples:
        >>> data_folder("/data/sets").as_posix()
        '/data/sets'
    """
    if folder is not None or (folder := os.environ.get("CALIBAYES_DATA")):
        try:
            return Path(folder).expanduser()
        except RuntimeError as error:
            raise InvalidArgumentError(
                f"Expected a folder of data sets that exists, but got {str(folder)!r}. {error}"
            ) from error
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # By the specification, a relative path in this variable is ignored.
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "calibayes"


def required(path: Path, name: str, title: str) -> Path:
    """Return ``path``, or raise a `MissingDataError` that says how to get the data set ``name`` with this title."""
    if not path.exists():
        raise MissingDataError(
            f"{title} is not here: there is no {str(path)!r}. Download it with `calibayes data get {name}`, "
            "or set CALIBAYES_DATA to the folder that holds it."
        )
    return path


def visible(folder: Path) -> list[Path]:
    """Return the files and folders in a folder, sorted, without the hidden files that file managers leave there."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
