"""Tests that need a real data set, and are skipped where it is not on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibayes.data.data_folder import data_folder
from calibayes.data.fetching import SETS

__all__ = ["needs", "place"]


def place(name: str) -> Path:
    """Where a data set lies, or would."""
    return data_folder() / SETS[name].place


def needs(*names: str) -> pytest.MarkDecorator:
    """A mark for tests (or ``pytestmark`` of a file) that need the named data sets."""
    missing = [name for name in names if not place(name).exists()]
    return pytest.mark.skipif(
        bool(missing),
        reason=f"not in {data_folder()}: {', '.join(missing)}; set CALIBAYES_DATA, or calibayes data get {' '.join(missing)}",
    )
