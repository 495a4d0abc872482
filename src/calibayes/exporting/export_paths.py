"""Where an export writes: a file, and those beside it, which must not replace what somebody else wrote."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from calibayes.atomic_file import atomic_file
from calibayes.errors import ExportError

__all__ = ["READER", "check_paths", "companions", "write_files"]

_CARD_BEGINS = "# A classifier of "
READER = Path(__file__).with_name("reader.py")


def companions(path: Path, described: bool) -> list[Path]:
    """Return the model card beside an exported file and, if its rows are described, the description and the reader."""
    others = [path.with_suffix(".json"), path.with_name(READER.name)] if described else []
    return [path.with_suffix(".md"), *others]


def check_paths(path: Path, described: bool) -> None:
    """Raise, before any work is done, unless a file and its companions can be written and replace only exported ones."""
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise ExportError(f"{str(path)!r} cannot be written: is there a folder {str(path.parent)!r}, and is it yours?")
    for each in (path, *companions(path, described)):
        if each.exists() and not each.is_file():
            raise ExportError(f"{str(each)!r} cannot be written: it is not a file. Export to another name.")
    for each in companions(path, described):
        if each.exists() and not _exported(each):
            raise ExportError(
                f"{str(each)!r} would be written beside {path.name!r}, but is there already, and is not from an export. Rename "
                "it, or export to another folder."
            )


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write each file complete or not at all, in this order."""
    for path, data in contents.items():
        try:
            with atomic_file(path) as unfinished:
                unfinished.write_bytes(data)
        except OSError as error:
            raise ExportError(f"{str(path)!r} cannot be written: {error.strerror or error}.") from error


def _exported(path: Path) -> bool:
    """Return True if a file has what an export writes to one of this name."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            values = json.loads(text)
            return isinstance(values, dict) and values.keys() >= {"classes", "actions", "outputs", "version"}
    except (OSError, ValueError):
        return False
    if path.name == READER.name:
        return text.split("\n")[0] == READER.read_text(encoding="utf-8").split("\n")[0]
    return text.startswith(_CARD_BEGINS)
