"""Columns of a table as numbers for a network: each kind of column knows how."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from calibayes.files.checked_fields import Fields
from calibayes.tables import RowBlock
from calibayes.tables.dates import DATE_PARTS, date_parts
from calibayes.tables.numbers import label_key

__all__ = ["CategoryColumn", "DateColumn", "InputColumn", "NumberColumn", "categories", "column_from", "standardised"]

Floats = npt.NDArray[np.float32]
_FAR = 10.0  # standard deviations: a cell that lies further off counts as this far
_ROUNDING = 1e-12
_MOST_VALUES = 100_000


@dataclass(frozen=True)
class NumberColumn:
    """Numbers, standardised; a missing one is the mean, and said to be missing where training had such.

    Attributes:
        name: of the column.
        mean: of the training examples.
        std: of the training examples.
        missing: whether some of them were missing.
    """

    kind: ClassVar[str] = "number"
    name: str
    mean: float
    std: float
    missing: bool

    @classmethod
    def fit(cls, name: str, values: npt.NDArray[np.float64]) -> Self:
        """What the training examples' values say."""
        known = values[~np.isnan(values)]
        return cls(name, float(known.mean()), float(_spread(known)), len(known) < len(values))

    @property
    def width(self) -> int:
        """How many numbers become of a cell."""
        return 1 + self.missing

    def to_dict(self) -> dict[str, Any]:
        """Everything, for a file."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """The inverse of `to_dict`."""
        return cls(fields.text("name"), fields.number("mean"), fields.number("std", positive=True), fields.flag("missing"))


@dataclass(frozen=True)
class DateColumn:
    """Dates as day, month, weekday and hour, each standardised.

    Attributes:
        name: of the column.
        means: of the parts, over the training examples.
        stds: of the parts.
        missing: whether some were missing.
    """

    kind: ClassVar[str] = "date"
    name: str
    means: tuple[float, ...]
    stds: tuple[float, ...]
    missing: bool

    @classmethod
    def fit(cls, name: str, values: npt.NDArray[np.float64]) -> Self:
        """What the training examples' values say."""
        known = values[~np.isnan(values[:, 0])]
        return cls(name, tuple(known.mean(0).tolist()), tuple(_spread(known).tolist()), len(known) < len(values))

    @property
    def width(self) -> int:
        """How many numbers become of a cell."""
        return len(DATE_PARTS) + self.missing

    def encode(self, block: RowBlock) -> Floats:
        """Return the standardised parts, and whether the date is missing."""
        values = date_parts(block, self.name)
        known = standardised(values, self.means, self.stds)
        return np.concatenate([known, np.isnan(values[:, :1])], axis=1).astype(np.float32) if self.missing else known

    def to_dict(self) -> dict[str, Any]:
        """Everything, for a file."""
        return {"kind": self.kind, **asdict(self), "means": list(self.means), "stds": list(self.stds)}

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """The inverse of `to_dict`."""
        parts = len(DATE_PARTS)
        means, stds = fields.numbers("means", parts), fields.numbers("stds", parts, positive=True)
        if not len(means) == len(stds) == parts:
            raise fields.wrong("means", f"{parts} numbers")
        return cls(fields.text("name"), means, stds, fields.flag("missing"))


@dataclass(frozen=True)
class CategoryColumn:
    """Categories, a place for each that training knew well, and one for all others if training had such.

    Attributes:
        name: of the column.
        values: the categories that have a place.
        unknown: whether there is a place for others; without one they are zeros everywhere, as missing cells may be.
        missing: whether there is a place for missing cells.
    """

    kind: ClassVar[str] = "category"
    name: str
    values: tuple[str, ...]
    unknown: bool
    missing: bool

    @property
    def width(self) -> int:
        """How many numbers become of a cell."""
        return len(self.values) + self.unknown + self.missing

    def encode(self, block: RowBlock) -> Floats:
        """Return a one in the place of each cell's category."""
        column, places = self._places(block)
        found = places.fill_null(len(self.values)).to_numpy(zero_copy_only=False)
        absent = column.is_null().to_numpy(zero_copy_only=False)
        coded = np.zeros((len(found), len(self.values) + 2), dtype=np.float32)
        coded[np.arange(len(found)), np.where(absent, len(self.values) + 1, found)] = 1
        kept = [*range(len(self.values)), *([len(self.values)] * self.unknown), *([len(self.values) + 1] * self.missing)]
        return coded[:, kept]

    def unseen(self, block: RowBlock) -> tuple[int, int, str | None]:
        """How many cells have no place of their own, of how many that are filled, and the first of them."""
        column, places = self._places(block)
        strange = column.filter(places.is_null()).drop_null()
        return len(strange), len(column) - column.null_count, strange[0].as_py() if len(strange) else None

    def _places(self, block: RowBlock) -> tuple[Any, Any]:
        """The cells, and the place of each among the values; null where it has none."""
        import pyarrow as pa
        from pyarrow import compute

        column = categories(block, self.name)
        return column, compute.index_in(column, pa.array(self.values, pa.large_string()))

    def to_dict(self) -> dict[str, Any]:
        """Everything, for a file."""
        return {"kind": self.kind, **asdict(self), "values": list(self.values)}

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """The inverse of `to_dict`."""
        values = fields.texts("values", _MOST_VALUES)
        return cls(fields.text("name"), values, fields.flag("unknown"), fields.flag("missing"))


InputColumn = NumberColumn | DateColumn | CategoryColumn

_KINDS: dict[str, Any] = {each.kind: each for each in (NumberColumn, DateColumn, CategoryColumn)}


def column_from(fields: Fields) -> InputColumn:
    """The column that a file describes."""
    column: InputColumn = _KINDS[fields.text("kind", tuple(_KINDS))].of(fields)
    return column


def _spread(known: npt.NDArray[np.float64]) -> Any:
    """Standard deviations; 1 where there is none but for rounding."""
    stds = known.std(0)
    return np.where(stds > _ROUNDING * np.abs(known).max(0), stds, 1.0)


def standardised(values: npt.NDArray[np.float64], means: Any, stds: Any) -> Floats:
    """Return values as standard deviations from the mean, 0 where they are missing."""
    scaled = np.clip((values - np.array(means)) / np.array(stds), -_FAR, _FAR)
    return np.where(np.isnan(scaled), 0.0, scaled).astype(np.float32)


def categories(block: RowBlock, name: str) -> Any:
    """Return a column as texts with one spelling for whole numbers and truth values: 3 for 3.0, true for True."""
    import pyarrow as pa

    column = block.cells(name).dictionary_encode()
    return pa.array([label_key(text) for text in column.dictionary.to_pylist()], pa.large_string()).take(column.indices)
