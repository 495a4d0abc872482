"""What the user typed, and what the shell is told."""

from __future__ import annotations

import shlex
import sys

__all__ = ["INTERRUPTED", "typed"]

INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended."""


def typed() -> str:
    """The command as it was typed, for the record."""
    return shlex.join(["calibayes", *sys.argv[1:]])
