"""How a file, a value or a list of columns is quoted in a message: on one line, whatever it holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from calibayes.errors import PredictionFileError

__all__ = ["MISSING", "complaint", "counted", "infinite", "listed", "missing", "problem", "shown", "shown_path"]

_VALUE_LIMIT, _PATH_LIMIT, _LIST_LIMIT = 60, 300, 12
#: What people write, in any case, where a number is missing.
MISSING = {"nan", "+nan", "-nan", "na", "n/a", "#n/a", "<na>", "null", "none", "nil", "-", "?", "."}
_INFINITE = re.compile(r"[+-]?(?:inf|infinity|∞)", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?[\d.,'\s]*,[\d.,'\s]*(?:[eE][+-]?\d+)?", re.ASCII)


def shown(value: object) -> str:
    r"""``value`` in quotes, cut when it is long, with control characters escaped.

    Examples:
        >>> shown("two\nlines"), shown("x" * 99)[-5:]
        ("'two\\nlines'", "xxx…'")
    """
    text = str(value)
    return repr(text if len(text) <= _VALUE_LIMIT else text[: _VALUE_LIMIT - 1] + "…")


def listed(values: Iterable[object]) -> str:
    """``values`` in quotes with commas between them; if there are many, the first ones and the last, which is often the target.

    Examples:
        >>> listed(["cat", "dog"])
        "'cat', 'dog'"
        >>> listed(range(100))
        "'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10', …, '99' (100 in all)"
    """
    every = [shown(value) for value in values]
    if len(every) <= _LIST_LIMIT:
        return ", ".join(every)
    return ", ".join([*every[: _LIST_LIMIT - 1], "…", every[-1]]) + f" ({len(every)} in all)"


def counted(number: int, noun: str) -> str:
    """A number and its noun: ``1 column``, ``2 columns``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def problem(path: Path, what: str, *, where: str = "") -> PredictionFileError:
    """The error to raise for what is wrong with the file ``path`` (at ``where``)."""
    return PredictionFileError(f"{shown_path(path)}, {where}: {what}" if where else f"{shown_path(path)}: {what}")


def shown_path(path: Path) -> str:
    """A path in quotes; of a long one the end, which says more than the beginning."""
    name = str(path)
    return repr(name if len(name) <= _PATH_LIMIT else "…" + name[1 - _PATH_LIMIT :])


def missing(cell: str) -> str:
    """What to say of a number or label that is not there."""
    what = f"{shown(cell)} is a missing value" if cell.strip() else "the cell is empty"
    return f"{what}. Fill it in or leave the row out."


def infinite(cell: str) -> str:
    """What to say of an infinite number."""
    return f"{shown(cell)} is infinite. Look for an overflow where the file was written."


def complaint(cell: str) -> str:
    """What keeps the text of a cell from being a number, and how to write it.

    Examples:
        >>> complaint("0,5")
        "'0,5' has a comma. Write numbers with a decimal point and without thousands separators, like 0.25."
    """
    text = cell.strip()
    if not text or text.lower() in MISSING:
        return missing(cell)
    if _INFINITE.fullmatch(text):
        return infinite(cell)
    if _COMMA.fullmatch(text):
        return f"{shown(cell)} has a comma. Write numbers with a decimal point and without thousands separators, like 0.25."
    if text.endswith("%"):
        return f"{shown(cell)} is a percentage. Write a probability between 0 and 1, like 0.25."
    return f"{shown(cell)} is not a number. Write it with digits and a decimal point, like 0.25."
