"""Results on disk, each in a file of its own that is there as a whole or not at all."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from calibayes.errors import DataError, InvalidArgumentError
from calibayes.metrics.score_table import as_json_numbers
from calibayes.sweeps.identity import canonical, key
from calibayes.sweeps.results_folder import prepare, unwritable, write_whole
from calibayes.tensor_tree_file import NewerFileError, TreeFileError, read_tree, write_tree

__all__ = ["DamagedError", "Failure", "Record", "Store", "signature", "storable"]

_KIND = "calibayes trial"
_FORMAT = 1
_SUFFIXES = (".json", ".safetensors")


class DamagedError(Exception):
    """A result is there, but cannot be trusted; whoever asked for it computes it again."""


@dataclass(frozen=True)
class Failure:
    """The reason why a trial has no result.

    Attributes:
        type: the name of the error's class.
        message: what it said.
        traceback: where it happened; empty if its process was killed.
    """

    type: str
    message: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


@dataclass(frozen=True)
class Record:
    """Everything that is kept of a trial.

    Attributes:
        trial: the name of its function.
        version: the version of what the function means.
        settings: what it was called with.
        result: what it returned: numbers, texts, tensors, lists and dicts; ``None`` if it failed.
        error: why it failed; ``None`` if it did not.
        started: when it began, in UTC.
        seconds: how long it took.
        versions: what computed it.
        machine: where.
    """

    trial: str
    version: int | str
    settings: dict[str, Any]
    result: dict[str, Any] | None
    error: Failure | None
    started: str
    seconds: float
    versions: dict[str, str]
    machine: dict[str, Any]

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the result."""
        return {"trial": self.trial, "version": self.version, "settings": self.settings}

    @property
    def key(self) -> str:
        """The name of the result in files' names."""
        return key(self.identity)


@dataclass(frozen=True)
class Store:
    """A folder of results; any number of processes may read and write at once.

    A file is written beside its place and then moved there. Its name is a label, which is for people who look into the
    folder, and the result's key. Results without tensors are readable JSON, the others safetensors.

    Args:
        folder: where the files are; it is made by `open`.
    """

    folder: Path

    def open(self) -> None:
        """Make the folder, and clear away what was being written when a process was killed."""
        prepare(self.folder)

    def paths(self) -> Iterator[Path]:
        """The files that may hold results, by their names."""
        return (path for path in sorted(self.folder.glob("[!.]*-*")) if path.suffix in _SUFFIXES)

    def find(self, key: str, label: str) -> Path | None:
        """The file of a result, most likely with this label; ``None`` if there is none yet."""
        likely = [self.folder / f"{label}-{key}{suffix}" for suffix in _SUFFIXES]
        if there := [path for path in likely if path.exists()]:
            return there[0]
        return next((path for path in self.paths() if path.stem.endswith(f"-{key}")), None)

    def records(
        self, damaged: Callable[[Path, DamagedError], None], keys: Container[str] | None = None
    ) -> Iterator[tuple[Path, Record]]:
        """Read all files, or those with these keys; ``damaged`` is called for each file that cannot be trusted."""
        for path in self.paths():
            if keys is None or path.stem.rpartition("-")[2] in keys:
                try:
                    record = self.read(path)
                except DamagedError as error:
                    damaged(path, error)
                    continue
                if record is not None:
                    yield path, record

    def read(self, path: Path) -> Record | None:
        """Read a file; ``None`` if it no longer exists, `DamagedError` if it is truncated or altered.

        One that a newer calibayes has written raises `DataError`: it is not ours to compute again.
        """
        version = signature(path)
        if version is None:
            return None
        try:
            tree = _read_json(path) if path.suffix == ".json" else read_tree(path, _KIND)
            record = Record(**{**tree, "error": None if tree["error"] is None else Failure(**tree["error"])})
        except NewerFileError as error:
            raise DataError(f"{str(path)!r} cannot be read: {error}. Update calibayes, or choose another folder.") from error
        except (TreeFileError, OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            if signature(path) != version:
                # The reader opens the file by its name more than once, and in between another process has replaced it.
                return self.read(path)
            raise DamagedError(f"{path.name} is damaged: {error}") from error
        if not path.stem.endswith(f"-{record.key}"):
            raise DamagedError(f"{path.name} is damaged: it holds another result than its name says")
        return record

    def write(self, label: str, record: Record) -> Path:
        """Keep a record in the place of any other with its key."""
        tree = {**vars(record), "error": None if record.error is None else asdict(record.error)}
        kind = ".safetensors" if any(True for _ in _tensors(record.result)) else ".json"
        path = self.folder / f"{label}-{record.key}{kind}"
        try:
            if kind == ".json":
                write_whole(path, _as_json(tree))
            else:
                write_tree(path, _KIND, tree)
            for other in self.paths():  # an error's, or one with another label
                if other != path and other.stem.endswith(f"-{record.key}"):
                    other.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(self.folder, error) from error
        except SafetensorError as error:  # what the file's own writer makes of a full disk
            raise unwritable(self.folder, OSError(str(error))) from error
        return path


def signature(path: Path) -> tuple[int, int] | None:
    """Return what changes when a file is replaced; ``None`` if there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def storable(value: Any, place: str = "the result") -> Any:
    """A result as it is kept: arrays as tensors, single numbers as such, NaN as None, tuples as lists; or a named error."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray | Tensor) and value.ndim == 0):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return torch.from_numpy(np.ascontiguousarray(value))
    if isinstance(value, Tensor) and value.layout == torch.strided and not (value.is_complex() or value.is_quantized):
        return value.detach().cpu()
    if value is None or isinstance(value, bool | int | float | str):
        return as_json_numbers(value)
    if isinstance(value, list | tuple):
        return [storable(each, f"{place}[{k}]") for k, each in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: storable(each, f"{place}[{name!r}]") for name, each in value.items()}
    raise InvalidArgumentError(
        f"Expected {place} to be a number, text, array, tensor, or a list or dict (with texts as keys) of these, "
        f"but got {value!r} ({type(value).__name__}), which cannot be kept in a file."
    )


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, list):
        for each in value:
            yield from _tensors(each)


def _as_json(tree: dict[str, Any]) -> bytes:
    whole = {**tree, "kind": _KIND, "format": _FORMAT, "crc32": _checksum(tree)}
    return (json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode(
        errors="backslashreplace"  # half a character, from the name of a file perhaps
    )


def _read_json(path: Path) -> dict[str, Any]:
    whole = json.loads(path.read_bytes())
    if not isinstance(whole, dict) or whole.pop("kind", None) != _KIND:
        raise ValueError("it is not the record of a trial")
    if (found := whole.pop("format", None)) != _FORMAT:
        raise NewerFileError(f"its format {found!r} is not one that this version of calibayes reads")
    if whole.pop("crc32", None) != _checksum(whole):
        raise ValueError("its checksum does not fit its contents")
    return whole


def _checksum(tree: dict[str, Any]) -> int:
    return zlib.crc32(canonical(tree).encode())
