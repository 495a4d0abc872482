"""The arrays of a NumPy archive, each read and checked when it is first used."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from calibayes.data.predictions.column_values import TextColumn
from calibayes.tables import RowSource, TableOptions
from calibayes.wording import shown

__all__ = ["NpzArrays"]

_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError, MemoryError)


@final
class NpzArrays(RowSource):
    """The arrays of an ``.npz`` file by name. Pickled objects are never loaded."""

    path: Path
    column_noun = "array"

    def __init__(self, path: Path) -> None:
        super().__init__(path, TableOptions())
        self._read: dict[str, npt.NDArray[Any]] = {}
        try:
            # NumPy leaves a file that it opened itself open when it is damaged.
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                self.names = tuple(archive.files)
        except _DAMAGE as error:
            raise self._torn(error) from None
        if not self.names:
            raise self.problem("the archive holds no arrays. Write it with numpy.savez(path, probs=…, targets=…).")

    def row_name(self, row: int) -> str:
        """Return the number of a row, counted from 1."""
        return f"row {row + 1}"

    def cell(self, row: int, column: str) -> str:
        """Return a value as a text; a column of a matrix is called ``probs[:, 3]``."""
        name, _, place = column.removesuffix("]").rpartition("[:, ") if column not in self.names else (column, "", "")
        values = self[name][row]
        return _text(values[int(place)] if place else values.item())

    def first(self, names: Sequence[str]) -> str | None:
        """Return the first of some names, in upper or lower case, that the archive has."""
        by_name = {name.strip().lower(): name for name in reversed(self.names)}
        return next((by_name[name] for name in names if name in by_name), None)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._read:
            try:
                with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                    value = archive[name]
            except _DAMAGE as error:
                if "allow_pickle" in str(error):
                    what = f"the array {shown(name)} holds Python objects, which are not loaded: they may run code. "
                    raise self.problem(what + "Store it as numbers or as texts (astype(str)).") from None
                raise self._torn(error) from None
            if not isinstance(value, np.ndarray):
                raise self.problem(f"{shown(name)} is not an array. Write the file with numpy.savez.")
            self._read[name] = value
        return self._read[name]

    def numbers(self, name: str) -> npt.NDArray[Any]:
        """Return an array of real numbers."""
        values = self[name]
        if values.dtype.kind not in "fiu":
            what = f"the array {shown(name)} holds {shown(values.dtype)}, not numbers. Store it as float32 or float64."
            raise self.problem(what)
        return values

    def texts(self, name: str) -> TextColumn:
        """Return a one-dimensional array of labels or ids as texts."""
        values = self[name]
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            hint = " One-hot labels: store targets.argmax(-1)." if values.ndim == 2 else ""
            what = f"the array {shown(name)} has shape {list(values.shape)}, but one value for each row is needed.{hint}"
            raise self.problem(what)
        if values.dtype.kind not in "fiubUST":
            what = f"the array {shown(name)} holds {shown(values.dtype)}. Store it as integers or texts."
            raise self.problem(what)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            row = int(np.argmax(~np.isfinite(values)))
            what = f"{shown(values[row])} is not a label. Fill it in or leave the row out."
            raise self.problem(what, row, name)
        distinct, codes = np.unique(values, return_inverse=True)
        return TextColumn(codes.astype(np.int64).reshape(-1), tuple(_text(value) for value in distinct.tolist()))

    def _torn(self, error: Exception) -> Exception:
        return self.problem(f"this is not a complete .npz file ({shown(error)}). Write it again with numpy.savez.")


def _text(value: object) -> str:
    return value.decode("utf-8", errors="surrogateescape") if isinstance(value, bytes) else str(value)
