"""TOML files of settings."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from calibayes.errors import DataError

__all__ = ["read_toml"]


def read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file, or an error that names the file and the place of what is wrong in it."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"Cannot read {str(path)!r}: {error.strerror or error}.") from error
    except ValueError as error:  # wrong TOML, or bytes that are not UTF-8
        raise DataError(f"Expected {str(path)!r} to be a TOML file, but: {error}.") from error
