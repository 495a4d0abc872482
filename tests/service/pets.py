"""Rows of the model that the tests serve."""

from __future__ import annotations

from typing import Any

from tests.files.guaranteed import HEADER, drawn_rows

__all__ = ["numbers", "rows_of"]


def rows_of(n: int, seed: int = 3) -> list[dict[str, str]]:
    """Rows as texts, with their class."""
    return [dict(zip(HEADER, row, strict=True)) for row in drawn_rows(n, seed)]


def numbers(n: int, seed: int = 3) -> list[dict[str, Any]]:
    """The same rows as numbers, without their class."""
    return [{"x": float(row["x"]), "z": float(row["z"])} for row in rows_of(n, seed)]
