"""Spellings of the same value, so that 3, 3.0 and "3" can meet."""

from __future__ import annotations

import re

__all__ = ["is_integer", "key"]

_INTEGER = re.compile(r"([+-]?)0*(\d+)(?:\.0*)?", re.ASCII)


def key(text: str) -> str:
    """Return what two spellings of the same label have in common: ``3``, ``3.0`` and `` 3``, ``True`` and ``true``.

    Examples:
        >>> key("3.0"), key(" 03"), key("-0"), key("TRUE"), key("Cat ")
        ('3', '3', '0', 'true', 'Cat')
    """
    text = text.strip()
    if number := _INTEGER.fullmatch(text):
        return number[2] if number[1] != "-" or number[2] == "0" else "-" + number[2]
    return text.lower() if text.lower() in ("true", "false") else text


def is_integer(text: str) -> bool:
    """Return True if a text is a whole number, also one written ``3.0``."""
    return _INTEGER.fullmatch(text.strip()) is not None
