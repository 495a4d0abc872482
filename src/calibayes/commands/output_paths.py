"""Check that results can be written where the user wants them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from calibayes.errors import InvalidArgumentError

__all__ = ["check_output_path"]


def check_output_path(flag: str, path: Path, inputs: Sequence[Path], contents: str) -> None:
    """Raise, before any work is done, unless a file can be written there; only files are replaced, and none of the inputs.

    Args:
        flag: the option that named it.
        path: the file.
        inputs: files to read, which must stay.
        contents: of the inputs, for the message.
    """
    try:
        what = ""
        if path.exists() and not path.is_file():
            what = "is not a file"
        elif any(_same(path, each) for each in inputs):
            what = f"holds {contents}"
        elif not os.access(path.parent, os.W_OK | os.X_OK):
            what = f"cannot be written: is there a folder {str(path.parent)!r}, and is it yours?"
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
    if what:
        raise InvalidArgumentError(f"Expected {flag} to name a file to write, but {str(path)!r} {what}")


def _same(first: Path, second: Path) -> bool:
    """Return True if two names are of one file, also if it has yet to be written."""
    if first.exists() and second.exists():
        return first.samefile(second)
    return first.resolve() == second.resolve()
