"""How a file, a value or a list of columns is quoted in a message: on one line, whatever it holds."""

from __future__ import annotations

import re
from pathlib import Path

from calibayes.errors import PredictionFileError
from calibayes.wording import counted, listed, shown, shown_path

__all__ = ["MISSING", "complaint", "counted", "infinite", "listed", "missing", "problem", "shown", "shown_path"]

#: What people write, in any case, where a number is missing.
MISSING = {"nan", "+nan", "-nan", "na", "n/a", "#n/a", "<na>", "null", "none", "nil", "-", "?", "."}
_INFINITE = re.compile(r"[+-]?(?:inf|infinity|∞)", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?[\d.,'\s]*,[\d.,'\s]*(?:[eE][+-]?\d+)?", re.ASCII)


def problem(path: Path, what: str, *, where: str = "") -> PredictionFileError:
    """The error to raise for what is wrong with the file ``path`` (at ``where``)."""
    return PredictionFileError(f"{shown_path(path)}, {where}: {what}" if where else f"{shown_path(path)}: {what}")


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
