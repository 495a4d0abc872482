"""How a file, a value or a list of columns is quoted in a message: on one line, whatever it holds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["counted", "listed", "shown", "shown_path"]

_VALUE_LIMIT, _PATH_LIMIT, _LIST_LIMIT = 60, 300, 12


def shown(value: object) -> str:
    r"""Quote ``value``, cut when it is long, with control characters escaped.

    Examples:
        >>> shown("two\nlines"), shown("x" * 99)[-5:]
        ("'two\\nlines'", "xxx…'")
    """
    text = str(value)
    return repr(text if len(text) <= _VALUE_LIMIT else text[: _VALUE_LIMIT - 1] + "…")


def listed(values: Iterable[object]) -> str:
    """Quote ``values`` with commas between them; if there are many, the first ones and the last, which is often the target.

    Examples:
        >>> listed(["cat", "dog"])
        "'cat', 'dog'"
        >>> listed(range(100))
        "'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10', …, '99' (100 in all)"
    """
    every = list(values)
    if len(every) <= _LIST_LIMIT:
        return ", ".join(map(shown, every))
    return ", ".join([*map(shown, every[: _LIST_LIMIT - 1]), "…", shown(every[-1])]) + f" ({len(every)} in all)"


def counted(number: int, noun: str) -> str:
    """Return a number and its noun: ``1 column``, ``2 columns``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def shown_path(path: Path) -> str:
    """Quote a path; of a long one the end, which says more than the beginning."""
    name = str(path)
    return repr(name if len(name) <= _PATH_LIMIT else "…" + name[1 - _PATH_LIMIT :])
