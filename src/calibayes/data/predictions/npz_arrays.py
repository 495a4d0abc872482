"""The arrays of a NumPy archive, each read when it is asked for and checked to be of a use."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from calibayes.data.predictions.column_names import find_name
from calibayes.data.predictions.raw_predictions import TextColumn, problem
from calibayes.wording import counted, shown

__all__ = ["NpzArrays"]

_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError, MemoryError)


@final
class NpzArrays:
    """The arrays of an ``.npz`` file by name. Pickled objects are never loaded.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: dict[str, npt.NDArray[Any]] = {}
        try:
            # NumPy leaves a file that it opened itself open when it is damaged.
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                self.names = tuple(archive.files)
        except _DAMAGE as error:
            raise self._torn(error) from None
        if not self.names:
            raise problem(path, "the archive holds no arrays. Write it with numpy.savez(path, probs=…, targets=…).")

    def where(self, row: int, column: str) -> str:
        """The row, counted from 1, and the array."""
        return f"row {row + 1}, array {shown(column)}"

    def cell(self, row: int, column: str) -> str:
        """A value as a text; a column of a matrix is called ``probs[:, 3]``."""
        name, _, place = column.removesuffix("]").rpartition("[:, ") if column not in self.names else (column, "", "")
        values = self[name][row]
        return _text(values[int(place)] if place else values.item())

    def first(self, names: Sequence[str]) -> str | None:
        """The first of some names, in any case, that the archive has."""
        by_name = {name.strip().lower(): name for name in reversed(self.names)}
        return next((by_name[name] for name in names if name in by_name), None)

    def find(self, name: str, flag: str) -> str:
        """The array that the user means."""
        return find_name(self, name, flag, noun="array")

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._read:
            try:
                with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                    value = archive[name]
            except _DAMAGE as error:
                if "allow_pickle" in str(error):
                    what = f"the array {shown(name)} holds Python objects, which are not loaded: they may run code. "
                    raise problem(self.path, what + "Store it as numbers or as texts (astype(str)).") from None
                raise self._torn(error) from None
            if not isinstance(value, np.ndarray):
                raise problem(self.path, f"{shown(name)} is not an array. Write the file with numpy.savez.")
            self._read[name] = value
        return self._read[name]

    def numbers(self, name: str) -> npt.NDArray[Any]:
        """An array of real numbers."""
        values = self[name]
        if values.dtype.kind not in "fiu":
            what = f"the array {shown(name)} holds {shown(values.dtype)}, not numbers. Store it as float32 or float64."
            raise problem(self.path, what)
        return values

    def texts(self, name: str) -> TextColumn:
        """A one-dimensional array of labels or ids, as texts."""
        values = self[name]
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            hint = " One-hot labels: store targets.argmax(-1)." if values.ndim == 2 else ""
            what = f"the array {shown(name)} has shape {list(values.shape)}, but one value for each row is needed.{hint}"
            raise problem(self.path, what)
        if values.dtype.kind not in "fiubUST":
            what = f"the array {shown(name)} holds {shown(values.dtype)}. Store it as integers or texts."
            raise problem(self.path, what)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            row = int(np.argmax(~np.isfinite(values)))
            what = f"{shown(values[row])} is no label. Fill it in or leave the row out."
            raise problem(self.path, what, where=self.where(row, name))
        distinct, codes = np.unique(values, return_inverse=True)
        return TextColumn(codes.astype(np.int64).reshape(-1), tuple(_text(value) for value in distinct.tolist()))

    def check_length(self, name: str, length: int, other: str, other_length: int) -> None:
        """Raise unless two arrays have as many rows."""
        if length != other_length:
            what = f"the array {shown(name)} has {counted(length, 'row')}, but {shown(other)} has {other_length:,}. "
            raise problem(self.path, what + "Store one value for each example.")

    def _torn(self, error: Exception) -> Exception:
        return problem(self.path, f"this is not a whole .npz file ({shown(error)}). Write it again with numpy.savez.")


def _text(value: object) -> str:
    return value.decode("utf-8", errors="surrogateescape") if isinstance(value, bytes) else str(value)
