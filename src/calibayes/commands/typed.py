"""What the user typed."""

from __future__ import annotations

import shlex
import sys

__all__ = ["typed"]


def typed() -> str:
    """The command as it was typed, for the record."""
    return shlex.join(["calibayes", *sys.argv[1:]])
