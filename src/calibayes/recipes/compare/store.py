"""Results on disk under everything that determines them, so that what has been computed once is not computed again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from calibayes.recipes.compare.folder import prepare, unwritable
from calibayes.treefile import TreeFileError, read_tree, write_tree

__all__ = ["DamagedError", "Store", "key"]

_KIND = "calibayes comparison result"


class DamagedError(Exception):
    """A result is there, but cannot be trusted; whoever asked for it computes it again."""


def key(identity: Mapping[str, Any]) -> str:
    """A name for a result: a checksum of everything that determines it, whatever the order it is told in.

    Example:
        >>> key({"seed": 0, "lam": 3.0}) == key({"lam": 3.0, "seed": 0}) != key({"seed": 1, "lam": 3.0})
        True
    """
    return hashlib.sha256(_canonical(identity).encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Store:
    """A folder of results, each in a file of its own that is there as a whole or not at all.

    Any number of processes may read and write at once: a file is written beside its place and then moved there. Two that
    compute the same result write the same file.

    Args:
        folder: where the files are; it is made by `open`.
    """

    folder: Path

    def open(self) -> None:
        """Make the folder, and clear away what was being written when a process was killed."""
        prepare(self.folder)

    def path(self, label: str, identity: Mapping[str, Any]) -> Path:
        """The file of a result; the label is for people who look into the folder."""
        return self.folder / f"{label}-{key(identity)}.safetensors"

    def read(self, label: str, identity: Mapping[str, Any]) -> Any | None:
        """The result with this identity, ``None`` if there is none yet, `DamagedError` if its file is torn or altered."""
        path = self.path(label, identity)
        version = _version(path)
        if version is None:
            return None
        try:
            tree = read_tree(path, _KIND)
        except TreeFileError as error:
            if _version(path) != version:
                # The reader opens the file by its name more than once, and in between another process has replaced it.
                return self.read(label, identity)
            raise DamagedError(f"{path.name} is damaged: {error}") from error
        if not isinstance(tree, dict) or tree.get("identity") != _canonical(identity):
            raise DamagedError(f"{path.name} is damaged: it holds another result than its name says")
        return tree["result"]

    def write(self, label: str, identity: Mapping[str, Any], result: Any) -> None:
        """Keep a result, made of numbers, texts, tensors, lists and dicts."""
        try:
            write_tree(self.path(label, identity), _KIND, {"identity": _canonical(identity), "result": result})
        except OSError as error:
            raise unwritable(self.folder, error) from error
        except SafetensorError as error:  # what the file's own writer makes of a full disk
            raise unwritable(self.folder, OSError(str(error))) from error


def _version(path: Path) -> tuple[int, int] | None:
    """What changes when a file is replaced; ``None`` where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _canonical(identity: Mapping[str, Any]) -> str:
    return json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
