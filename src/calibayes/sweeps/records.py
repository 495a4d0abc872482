"""Results on disk, each in its own file, which is complete or not there at all."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from calibayes.errors import DataError, InvalidArgumentError
from calibayes.metrics.score_table import as_json_numbers
from calibayes.sweeps.results_folder import prepare, unwritable, write_whole
from calibayes.sweeps.trial_identity import canonical_json, result_key
from calibayes.tensor_tree_file import NewerFileError, TreeFileError, read_tree, write_tree

__all__ = ["DamagedError", "Failure", "Record", "Store", "StoredResult", "signature", "storable"]

_KIND = "calibayes trial"
_FORMAT = 1
_SUFFIXES = (".json", ".safetensors")


class DamagedError(Exception):
    """The file of a result is truncated or altered, so the trial has to run again."""


@dataclass(frozen=True)
class Failure:
    """The reason why a trial has no result.

    Attributes:
        type: the name of the error's class.
        message: its message.
        traceback: where it happened; empty if its process was killed.
    """

    type: str
    message: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


@dataclass(frozen=True)
class Record:
    """Everything that is kept of a trial."""

    trial: str  # the name of its function
    version: int | str  # the version of the function
    settings: dict[str, Any]  # the settings it was called with
    result: dict[str, Any] | None  # numbers, texts, tensors, lists and dicts; None if it failed
    error: Failure | None  # None if it did not fail
    started: str  # when it began, in UTC
    seconds: float  # how long it took
    versions: dict[str, str]  # of the software
    machine: dict[str, Any]

    @property
    def key(self) -> str:
        """The key of the result in the names of files."""
        return result_key(self.trial, self.version, self.settings)


class StoredResult(NamedTuple):
    """A result on disk."""

    path: Path
    record: Record


@dataclass(frozen=True)
class Store:
    """A folder of results, made by `open`; any number of processes may read and write at once.

    A file's name is a label, which is for people who look into the folder, and the result's key. Results without tensors are
    readable JSON, the others safetensors.
    """

    folder: Path

    def open(self) -> None:
        """Make the folder, and clear away files that killed processes left unfinished."""
        prepare(self.folder)

    def paths(self) -> Iterator[Path]:
        """The files that may hold results, by their names."""
        return (path for path in sorted(self.folder.glob("[!.]*-*")) if path.suffix in _SUFFIXES)

    def find(self, key: str, label: str) -> Path | None:
        """The file of a result, most likely with this label; ``None`` if it does not exist yet."""
        likely = (self.folder / f"{label}-{key}{suffix}" for suffix in _SUFFIXES)
        others = (path for path in self.paths() if path.stem.endswith(f"-{key}"))
        return next((path for path in likely if path.exists()), None) or next(others, None)

    def records(
        self, damaged: Callable[[Path, DamagedError], None], keys: Container[str] | None = None
    ) -> Iterator[StoredResult]:
        """Read all files, or those with these keys; ``damaged`` is called for each damaged file."""
        for path in self.paths():
            if keys is None or path.stem.rpartition("-")[2] in keys:
                try:
                    record = self.read(path)
                except DamagedError as error:
                    damaged(path, error)
                    continue
                if record is not None:
                    yield StoredResult(path, record)

    def read(self, path: Path) -> Record | None:
        """Read a file; ``None`` if it no longer exists, `DamagedError` if it is truncated or altered.

        A file of a newer calibayes raises `DataError`, since it must not be replaced.
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
                # The reader opens the file more than once, and another process has replaced it in between.
                return self.read(path)
            raise DamagedError(f"{path.name} is damaged: {error}") from error
        if not path.stem.endswith(f"-{record.key}"):
            raise DamagedError(f"{path.name} is damaged: it does not hold the result that its name says")
        return record

    def write(self, label: str, record: Record) -> Path:
        """Store a record in place of any other with its key."""
        tree = {**vars(record), "error": None if record.error is None else asdict(record.error)}
        kind = ".safetensors" if _has_tensors(record.result) else ".json"
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
        except SafetensorError as error:  # raised by its writer on a full disk
            raise unwritable(self.folder, OSError(str(error))) from error
        return path


def signature(path: Path) -> tuple[int, int] | None:
    """Return a value that changes when the file is replaced; ``None`` if it does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def storable(value: Any, place: str = "the result") -> Any:
    """A result as files hold it: arrays as tensors, single numbers as such, NaN as None, tuples as lists; or a named error."""
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


def _has_tensors(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, Tensor) or any(map(_has_tensors, parts))


def _as_json(tree: dict[str, Any]) -> bytes:
    whole = {**tree, "kind": _KIND, "format": _FORMAT, "crc32": _checksum(tree)}
    return (json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode(
        errors="backslashreplace"  # half a character, perhaps from a file name
    )


def _read_json(path: Path) -> dict[str, Any]:
    whole = json.loads(path.read_bytes())
    if not isinstance(whole, dict) or whole.pop("kind", None) != _KIND:
        raise ValueError("not the record of a trial")
    if (version := whole.pop("format", None)) != _FORMAT:
        raise NewerFileError(f"its format {version!r} is not one that this version of calibayes reads")
    if whole.pop("crc32", None) != _checksum(whole):
        raise ValueError("its checksum does not fit its contents")
    return whole


def _checksum(tree: dict[str, Any]) -> int:
    return zlib.crc32(canonical_json(tree).encode())
