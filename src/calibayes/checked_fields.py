"""Values from a file of unknown origin: each is checked for its type and size before it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from calibayes.errors import ModelFileError
from calibayes.wording import shown

__all__ = ["Fields"]

_MOST = 10**12  # of anything that is counted
_LARGEST = 1e302  # the capital of a `ShiftMonitor` comes near it; integers beyond the range of floats cannot be compared


class Fields:
    """Checked access to a mapping, called ``place`` in messages: a value of another type or size is a `ModelFileError`.

    Examples:
        >>> fields = Fields({"mean": 1.5, "names": ["a", "b"]}, "column 'x'")
        >>> fields.number("mean"), fields.texts("names")
        (1.5, ('a', 'b'))
    """

    def __init__(self, values: Any, place: str) -> None:
        if not isinstance(values, dict):
            raise ModelFileError(f"Expected {place} to be a table of values, but got {shown(values)}.")
        self._values, self._place = values, place

    @classmethod
    def described(cls, values: Mapping[str, Any], kind: str) -> Self:
        """Check that a description is of this ``kind``, as its value of that name says, and return its fields."""
        if not isinstance(values, Mapping) or values.get("kind") != kind:
            got = values.get("kind") if isinstance(values, Mapping) else values
            raise ModelFileError(f"Expected a description of the kind {kind!r}, but got {shown(got)}.")
        return cls(dict(values), f"the description of the kind {kind!r}")

    def has(self, name: str) -> bool:
        """Return True if there is a value of this name."""
        return name in self._values

    def is_none(self, name: str) -> bool:
        """Return True if there is a value of this name, which is None."""
        return self.has(name) and self._values[name] is None

    def text(self, name: str, known: tuple[str, ...] | None = None) -> str:
        """Return a text, one of those that are ``known``."""
        value = self._values.get(name)
        if not isinstance(value, str) or (known is not None and value not in known):
            raise self.wrong(name, "a text" if known is None else f"one of {', '.join(known)}")
        return value

    def flag(self, name: str) -> bool:
        """Return a truth value."""
        value = self._values.get(name)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def number(self, name: str, *, positive: bool = False, least: float | None = None) -> float:
        """Return a finite number."""
        value: Any = self._values.get(name)
        if not _is_number(value, positive) or (least is not None and value < least):
            bound = "" if least is None else f" of at least {least:g}"
            raise self.wrong(name, f"a {'positive ' if positive else ''}finite number{bound}")
        return float(value)

    def fraction(self, name: str) -> float:
        """Return a number between 0 and 1, both excluded."""
        value: Any = self._values.get(name)
        if not _is_number(value, True) or value >= 1:
            raise self.wrong(name, "a number between 0 and 1, both excluded")
        return float(value)

    def numbers(
        self, name: str, most: int | None = None, *, positive: bool = False, none: float | None = None
    ) -> tuple[float, ...]:
        """Return a list of finite numbers, with ``none`` in place of each None if it is given."""
        values = self._list(name, most)
        if not all(_is_number(value, positive) or (value is None and none is not None) for value in values):
            raise self.wrong(name, f"a list of {'positive ' if positive else ''}finite numbers")
        return tuple(none if value is None and none is not None else float(value) for value in values)

    def number_rows(self, name: str, most: int | None, width: int | None) -> tuple[tuple[float, ...], ...]:
        """Return a list of rows, each of ``width`` finite numbers; None for any number of them."""
        rows = self._list(name, most)
        if not all(
            isinstance(row, list) and width in (None, len(row)) and all(_is_number(each, False) for each in row) for row in rows
        ):
            raise self.wrong(name, f"rows of {'' if width is None else f'{width} '}finite numbers")
        return tuple(tuple(map(float, row)) for row in rows)

    def array(self, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Return an array of non-negative finite numbers of this shape, from nested lists."""
        try:
            values = np.array(self._values.get(name))
        except ValueError:  # lists of different lengths
            values = np.array(None)
        if values.shape != shape or values.dtype.kind not in "fi" or not bool(((values >= 0) & np.isfinite(values)).all()):
            raise self.wrong(name, f"an array of shape {list(shape)} with finite numbers of at least 0")
        return values.astype(np.float64)

    def tensor(self, name: str, dtype: torch.dtype, shape: tuple[int | None, ...], most: int) -> Tensor:
        """Return a tensor of finite numbers; a size of None may be any up to ``most``."""
        value = self._values.get(name)
        if not isinstance(value, Tensor) or value.dtype != dtype or value.dim() != len(shape):
            raise self.wrong(name, f"a tensor of {len(shape)} axes and {dtype}")
        if any(size > most if wanted is None else size != wanted for size, wanted in zip(value.shape, shape, strict=True)):
            raise self.wrong(name, f"a tensor of shape {[f'at most {most}' if each is None else each for each in shape]}")
        if not bool(value.isfinite().all()):
            raise self.wrong(name, "a tensor of finite numbers")
        return value

    def seed(self, name: str, least: int | None = None) -> int:
        """Return a whole number of any size, of at least ``least``."""
        value = self._values.get(name)
        if type(value) is not int or (least is not None and value < least):
            raise self.wrong(name, "a whole number" if least is None else f"a whole number of at least {least}")
        return value

    def size(self, name: str, least: int, most: int = _MOST) -> int:
        """Return a whole number from ``least`` to ``most``."""
        value = self._values.get(name)
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(name, f"a whole number from {least} to {most:,}")
        return value

    def sizes(self, name: str, most_of_them: int | None, most: int = _MOST, least: int = 1) -> tuple[int, ...]:
        """Return a list of whole numbers from ``least`` to ``most``."""
        values = self._list(name, most_of_them)
        if not all(type(value) is int and least <= value <= most for value in values):
            raise self.wrong(name, f"a list of whole numbers from {least} to {most:,}")
        return tuple(values)

    def texts(self, name: str, most: int = 10_000_000) -> tuple[str, ...]:
        """Return a list of different texts."""
        values = self._list(name, most)
        if not all(isinstance(value, str) for value in values) or len(set(values)) < len(values):
            raise self.wrong(name, "a list of different texts")
        return tuple(values)

    def inside(self, name: str) -> Fields:
        """Return a mapping within."""
        return Fields(self._values.get(name), f"{name!r} of {self._place}")

    def each(self, name: str, most: int | None = None) -> list[Fields]:
        """Return a list of mappings."""
        return [Fields(value, f"{name!r} {place} of {self._place}") for place, value in enumerate(self._list(name, most))]

    def _list(self, name: str, most: int | None) -> list[Any]:
        values = self._values.get(name)
        if not isinstance(values, list) or (most is not None and len(values) > most):
            raise self.wrong(name, "a list" if most is None else f"a list of at most {most:,}")
        return values

    def wrong(self, name: str, wanted: str) -> ModelFileError:
        """Return the error for a value that is not ``wanted``."""
        value = self._values.get(name, "nothing")
        return ModelFileError(f"Expected {name!r} of {self._place} to be {wanted}, but got {shown(value)}.")


def _is_number(value: Any, positive: bool) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST and math.isfinite(value)
    return number and (value > 0 or not positive)
