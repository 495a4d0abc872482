"""The kinds of columns of a table, and their conversion to numbers for a network."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from calibayes.checked_fields import Fields
from calibayes.tables import RowBlock
from calibayes.tables.dates import DATE_PARTS, date_parts
from calibayes.tables.numbers import label_key
from calibayes.tables.table_file import trimmed

__all__ = [
    "FAR",
    "FURTHEST",
    "CategoryColumn",
    "DateColumn",
    "InputColumn",
    "NumberColumn",
    "categories",
    "column_from",
    "raw_numbers",
    "standardised",
]

Floats = npt.NDArray[np.float32]
FAR = 10.0  # standard deviations, to which values further from the mean are clipped
FURTHEST = 1e30  # what float32 can hold
_ROUNDING = 1e-12
_MOST_VALUES = 100_000
_FEW = 64  # rows


@dataclass(frozen=True)
class NumberColumn:
    """Numbers, standardised by the training examples; a missing one is the mean, and is flagged if training had some."""

    kind: ClassVar[str] = "number"
    name: str
    mean: float
    std: float
    missing: bool  # whether there is a flag for missing cells

    @classmethod
    def fit(cls, name: str, values: npt.NDArray[np.float64]) -> Self:
        """Learn mean and standard deviation from the training examples."""
        known = values[~np.isnan(values)]
        return cls(name, float(known.mean()), float(_spread(known)), len(known) < len(values))

    @property
    def width(self) -> int:
        """The number of inputs for a cell."""
        return 1 + self.missing

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for a file."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """Invert `to_dict`."""
        return cls(fields.text("name"), fields.number("mean"), fields.number("std", positive=True), fields.flag("missing"))


@dataclass(frozen=True)
class DateColumn:
    """Dates as day, month, weekday and hour, each standardised by the training examples."""

    kind: ClassVar[str] = "date"
    name: str
    means: tuple[float, ...]
    stds: tuple[float, ...]
    missing: bool  # whether there is a flag for missing cells

    @classmethod
    def fit(cls, name: str, values: npt.NDArray[np.float64]) -> Self:
        """Learn mean and standard deviation from the training examples."""
        known = values[~np.isnan(values[:, 0])]
        return cls(name, tuple(known.mean(0).tolist()), tuple(_spread(known).tolist()), len(known) < len(values))

    @property
    def width(self) -> int:
        """The number of inputs for a cell."""
        return len(DATE_PARTS) + self.missing

    def encode(self, block: RowBlock) -> Floats:
        """Return the standardised parts, and the flag of a missing date."""
        values = date_parts(block, self.name)
        known = standardised(values, self.means, self.stds)
        return np.concatenate([known, np.isnan(values[:, :1])], axis=1).astype(np.float32) if self.missing else known

    def encode_raw(self, block: RowBlock) -> Floats:
        """Return the standardised parts, NaN where the date is missing."""
        return raw_numbers(date_parts(block, self.name), self.means, self.stds)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for a file."""
        return {"kind": self.kind, **asdict(self), "means": list(self.means), "stds": list(self.stds)}

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """Invert `to_dict`."""
        parts = len(DATE_PARTS)
        means, stds = fields.numbers("means", parts), fields.numbers("stds", parts, positive=True)
        if not len(means) == len(stds) == parts:
            raise fields.wrong("means", f"{parts} numbers")
        return cls(fields.text("name"), means, stds, fields.flag("missing"))


@dataclass(frozen=True)
class CategoryColumn:
    """Categories: an input for each that was frequent in training, and one for all others if training had some."""

    kind: ClassVar[str] = "category"
    name: str
    values: tuple[str, ...]  # the categories that have an input
    unknown: bool  # whether there is an input for others; without one they are zeros everywhere, as missing cells may be
    missing: bool  # whether there is an input for missing cells

    @property
    def width(self) -> int:
        """The number of inputs for a cell."""
        return len(self.values) + self.unknown + self.missing

    def encode(self, block: RowBlock) -> Floats:
        """Return a one at the place of each cell's category."""
        codes = self._codes(block)
        coded = np.zeros((len(codes), len(self.values) + 2), dtype=np.float32)
        coded[np.arange(len(codes)), codes] = 1
        kept = [*range(len(self.values)), *([len(self.values)] * self.unknown), *([len(self.values) + 1] * self.missing)]
        return coded[:, kept]

    def encode_raw(self, block: RowBlock) -> Floats:
        """Return the place of each cell's category, the number of places for others, and NaN for missing cells."""
        codes = self._codes(block)
        raw: Floats = codes.astype(np.float32)
        raw[codes > len(self.values)] = np.nan
        return raw[:, None]

    def unseen(self, block: RowBlock) -> tuple[int, int, str | None]:
        """Return the number of filled cells whose category has no input, of all filled cells, and the first such category."""
        if len(block.rows) <= _FEW:
            filled = [text for text in block.table.column(self.name).to_pylist() if text and not text.isspace()]
            others = [key for text in filled if text not in self._place_of and (key := label_key(text)) not in self._place_of]
            return len(others), len(filled), others[0] if others else None
        column, places = self._places(block)
        unseen = column.filter(places.is_null()).drop_null()
        return len(unseen), len(column) - column.null_count, unseen[0].as_py() if len(unseen) else None

    @cached_property
    def _place_of(self) -> dict[str, int]:
        return {value: place for place, value in reversed([*enumerate(self.values)])}

    def _codes(self, block: RowBlock) -> npt.NDArray[np.int64]:
        """Return the place of each cell among the values, the number of values for others, and one more for missing cells."""
        others, missing = len(self.values), len(self.values) + 1
        if len(block.rows) <= _FEW:  # faster one by one than by Arrow, which services notice
            texts = block.table.column(self.name).to_pylist()
            keys = [label_key(text) if text else "" for text in texts]
            return np.array([self._place_of.get(key, others) if key else missing for key in keys], dtype=np.int64)
        column, places = self._places(block)
        codes: npt.NDArray[np.int64] = places.fill_null(others).to_numpy(zero_copy_only=False).astype(np.int64)
        codes[column.is_null().to_numpy(zero_copy_only=False)] = missing
        return codes

    def _places(self, block: RowBlock) -> tuple[Any, Any]:
        """Return the cells, and the place of each among the values; null where it has none."""
        import pyarrow as pa
        from pyarrow import compute

        column = categories(block, self.name)
        return column, compute.index_in(column, pa.array(self.values, pa.large_string()))

    def to_dict(self) -> dict[str, Any]:
        """Return everything, for a file."""
        return {"kind": self.kind, **asdict(self), "values": list(self.values)}

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """Invert `to_dict`."""
        values = fields.texts("values", _MOST_VALUES)
        return cls(fields.text("name"), values, fields.flag("unknown"), fields.flag("missing"))


InputColumn = NumberColumn | DateColumn | CategoryColumn

_KINDS: dict[str, Any] = {each.kind: each for each in (NumberColumn, DateColumn, CategoryColumn)}


def column_from(fields: Fields) -> InputColumn:
    """Return the column that a file describes."""
    column: InputColumn = _KINDS[fields.text("kind", tuple(_KINDS))].of(fields)
    return column


def _spread(known: npt.NDArray[np.float64]) -> Any:
    """Return standard deviations; 1 where they are zero up to rounding."""
    stds = known.std(0)
    return np.where(stds > _ROUNDING * np.abs(known).max(0), stds, 1.0)


def standardised(values: npt.NDArray[np.float64], means: Any, stds: Any) -> Floats:
    """Return values in standard deviations from the mean, 0 where they are missing."""
    scaled = np.clip((values - np.array(means)) / np.array(stds), -FAR, FAR)
    return np.where(np.isnan(scaled), 0.0, scaled).astype(np.float32)


def raw_numbers(values: npt.NDArray[np.float64], means: Any, stds: Any) -> Floats:
    """Return values in standard deviations from the mean, however far, and NaN where they are missing."""
    scaled: Floats = np.clip((values - np.array(means)) / np.array(stds), -FURTHEST, FURTHEST).astype(np.float32)
    return scaled


def categories(block: RowBlock, name: str) -> Any:
    """Return a column as texts with one spelling for whole numbers and truth values: 3 for 3.0, true for True."""
    import pyarrow as pa

    cells = block.table.column(name).combine_chunks().dictionary_encode()  # few texts to look at, where many are the same
    keys = [None if text is None else label_key(text) for text in trimmed(cells.dictionary).to_pylist()]
    return pa.array(keys, pa.large_string()).take(cells.indices)
