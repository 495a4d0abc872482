"""The columns of an array, a sparse matrix or a data frame as rows of numbers and category codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array, validate_data

from calibayes.errors import InvalidArgumentError

__all__ = ["TableColumns", "as_table", "check_inputs"]

_MOST_CATEGORIES = 255  # of a column; the rarest beyond count as one
_LEAST = 2  # rows with a category for it to be one
_NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty"}
_CLOSE = 1e-3  # of its size: a column that varies less loses digits in float32 unless its median is subtracted
_LARGEST = 2.0**100  # beyond, and below its inverse, float32 is near its limits


def check_inputs(estimator: Any, x: Any, y: Any = None, *, reset: bool) -> tuple[Any, Any]:
    """The inputs and classes, checked as scikit-learn does; frames with columns that are not numbers stay frames.

    Missing values, NaN, are fine; infinite ones are an error.
    """
    table = as_table(x)
    classes: dict[str, Any] = {} if y is None else {"y": y}
    if _has_categories(table) or (not reset and getattr(estimator._inputs, "categories", None) and hasattr(x, "__array__")):
        import pandas as pd

        frame = table if hasattr(table, "iloc") else pd.DataFrame(x)
        checked = validate_data(estimator, frame, **classes, reset=reset, skip_check_array=True)
        if not len(frame):
            raise InvalidArgumentError("Found array with 0 sample(s): expected at least one row.")
        return (frame, None) if y is None else (frame, _checked_classes(checked[1], len(frame)))
    settings = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": "allow-nan", "reset": reset}
    checked = validate_data(estimator, table, **classes, **settings)
    return (checked, None) if y is None else checked


def as_table(x: Any) -> Any:
    """The inputs; a table of another library that can, such as polars or pyarrow, becomes a frame of pandas."""
    return x.to_pandas() if not hasattr(x, "iloc") and hasattr(x, "to_pandas") else x


def _checked_classes(y: Any, rows: int) -> Any:
    labels = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    labels = np.asarray(labels).reshape(len(labels), -1)
    if labels.shape != (rows, 1):
        raise InvalidArgumentError(
            f"Expected `y` to be a class for each of the {rows:,} rows, but it has shape {labels.shape}."
        )
    return labels[:, 0]


def _has_categories(x: Any) -> bool:
    return hasattr(x, "iloc") and hasattr(x, "dtypes") and x.ndim == 2 and any(_kind(x.iloc[:, i]) for i in range(x.shape[1]))


def _kind(column: Any) -> str:
    """``""`` for numbers, ``"date"`` or ``"category"``."""
    from pandas.api import types

    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufc":
        return ""
    if types.is_datetime64_any_dtype(column.dtype) or types.is_timedelta64_dtype(column.dtype):
        return "date"
    if types.is_object_dtype(column.dtype):
        return "" if types.infer_dtype(column, skipna=True) in _NUMBERS else "category"
    return "" if types.is_numeric_dtype(column.dtype) else "category"


@dataclass(frozen=True, eq=False)
class TableColumns:
    """How columns become inputs: numbers in float32, and the codes of categories.

    Attributes:
        known: the categories of each column, ``None`` for a column of numbers; those not among them have the next code.
        shifts: what is subtracted from each number.
        powers: of two, that each number is divided by.
    """

    known: tuple[tuple[Any, ...] | None, ...]
    shifts: npt.NDArray[np.float64]
    powers: npt.NDArray[np.int64]

    @classmethod
    def fit(cls, x: Any) -> Self:
        """Learn the categories of a frame, and which numbers must be moved to keep their digits."""
        if not hasattr(x, "iloc"):
            return cls((None,) * x.shape[1], *_moves(x))
        columns = [x.iloc[:, place] for place in range(x.shape[1])]
        kinds = [_kind(column) for column in columns]
        numbers = [
            _values(column) if kind != "category" else np.zeros(len(x)) for column, kind in zip(columns, kinds, strict=True)
        ]
        known = [_categories(column) if kind == "category" else None for column, kind in zip(columns, kinds, strict=True)]
        return cls(tuple(known), *_moves(np.column_stack(numbers)))

    @property
    def numbers(self) -> list[int]:
        """The places of the columns of numbers."""
        return [place for place, known in enumerate(self.known) if known is None]

    @property
    def categories(self) -> list[tuple[int, int]]:
        """The places of the columns of categories, and the number of codes of each."""
        return [(place, len(known) + 1) for place, known in enumerate(self.known) if known is not None]

    def rows(self, x: Any) -> npt.NDArray[np.float32]:
        """The inputs ``[n, columns]``; a missing number is NaN."""
        if hasattr(x, "iloc"):
            x = np.column_stack([self._column(x.iloc[:, place], place) for place in range(x.shape[1])])
        elif hasattr(x, "toarray"):
            x = x.toarray()
        if self.shifts.any() or self.powers.any():
            x = np.ldexp(x - self.shifts, -self.powers)
        with np.errstate(over="ignore"):
            largest = np.finfo(np.float32).max
            rows: npt.NDArray[np.float32] = (np.clip(x, -largest, largest) + 0.0).astype(np.float32)
        return rows

    def _column(self, column: Any, place: int) -> npt.NDArray[np.float64]:
        known = self.known[place]
        if known is None:
            try:
                return _values(column)
            except (TypeError, ValueError) as error:
                raise InvalidArgumentError(
                    f"Expected numbers in column {column.name!r}, as in training, but got {column.dtype} values: {error}."
                ) from None
        import pandas as pd

        codes = pd.Index(list(known), dtype=object).get_indexer(_objects(column))
        return np.where(codes < 0, len(known), codes).astype(np.float64)


def _values(column: Any) -> npt.NDArray[np.float64]:
    """A column of numbers or dates (in days) as float64; NaN where a value is missing."""
    if _kind(column) == "date":
        days = column.to_numpy(
            dtype="datetime64[ns]" if hasattr(column, "dt") and hasattr(column.dt, "year") else "timedelta64[ns]"
        )
        return np.where(np.isnat(days), np.nan, days.astype(np.int64) / 86_400e9)
    values = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if np.isinf(values).any():
        place = int(np.flatnonzero(np.isinf(values))[0])
        raise InvalidArgumentError(
            f"Input X contains infinity: column {column.name!r}, row {place}. Replace it by a number, or by NaN for missing."
        )
    return values


def _objects(column: Any) -> npt.NDArray[Any]:
    """The values of a column of categories; ``None`` where one is missing."""
    values = column.astype(object).to_numpy(copy=True)
    values[column.isna().to_numpy()] = None
    return np.asarray(values)


def _categories(column: Any) -> tuple[Any, ...]:
    """The categories of a column, by how often they occur; a missing value is one as well."""
    import pandas as pd

    try:
        codes, values = pd.factorize(_objects(column), use_na_sentinel=False)
    except TypeError:
        raise InvalidArgumentError(
            f"Expected numbers, texts or categories in column {column.name!r}, but got values such as {column.iloc[0]!r}."
        ) from None
    counts = np.bincount(codes)
    order = sorted(range(len(values)), key=lambda place: (-counts[place], str(values[place])))
    found = [None if pd.isna(values[place]) else values[place] for place in order if counts[place] >= _LEAST]
    return tuple(found[:_MOST_CATEGORIES])


def _moves(x: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """What to subtract and divide by where float32 would lose digits: nothing for most columns."""
    shifts, powers = np.zeros(x.shape[1]), np.zeros(x.shape[1], dtype=np.int64)
    if hasattr(x, "toarray") or not len(x):
        return shifts, powers
    with np.errstate(all="ignore"):
        low, high = np.fmin.reduce(x, axis=0), np.fmax.reduce(x, axis=0)  # NaN for a column without any value
        size = np.maximum(np.abs(low), np.abs(high))
        close = high - low < _CLOSE * size
        shifts[close] = [np.nanmedian(column) for column in x.T[close]]
        spread = np.where(close, high - low, size)
        odd = (spread > _LARGEST) | ((spread > 0) & (spread < 1 / _LARGEST))
    powers[odd] = np.frexp(spread[odd])[1]
    return shifts, powers
