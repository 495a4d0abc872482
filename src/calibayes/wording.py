"""Write values, lists, counts, sizes and durations in messages, on one line."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

__all__ = [
    "clock",
    "counted",
    "did_you_mean",
    "first_few",
    "joined",
    "listed",
    "megabytes",
    "percent",
    "shortened",
    "shown",
    "shown_path",
    "type_name",
]

_VALUE_LIMIT, _PATH_LIMIT, _LIST_LIMIT = 60, 300, 12


def shown(value: object) -> str:
    r"""Quote ``value``, cut when it is long, with control characters escaped.

    Examples:
        >>> shown("two\nlines"), shown("x" * 99)[-5:]
        ("'two\\nlines'", "xxx…'")
    """
    return repr(_cut(str(value)))


def _cut(text: str) -> str:
    return text if len(text) <= _VALUE_LIMIT else text[: _VALUE_LIMIT - 1] + "…"


def shortened(value: object) -> str:
    """Return Python's own notation for ``value``, cut when it is long.

    Examples:
        >>> shortened({"lam": 10.0}), shortened(list(range(99)))[-8:]
        ("{'lam': 10.0}", '5, 16, …')
    """
    return _cut(repr(value))


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


def first_few(words: Collection[str], most: int = 8) -> str:
    """Join the first ``most`` words with commas, with an ellipsis for the others.

    Examples:
        >>> first_few(["a", "b", "c"], 2), first_few(["a", "b"], 2)
        ('a, b, …', 'a, b')
    """
    return ", ".join(list(words)[:most]) + (", …" if len(words) > most else "")


def joined(words: Sequence[str]) -> str:
    """Join words as a sentence does.

    Examples:
        >>> joined(["ECE"]), joined(["ECE", "NLL", "accuracy"])
        ('ECE', 'ECE, NLL and accuracy')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def counted(number: int, noun: str) -> str:
    """Return a number and its noun: ``1 column``, ``2 columns``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def shown_path(path: Path) -> str:
    """Quote a path, cut at the beginning when it is long."""
    name = str(path)
    return repr(name if len(name) <= _PATH_LIMIT else "…" + name[1 - _PATH_LIMIT :])


def percent(value: float) -> str:
    """Write a fraction in per cent, with a decimal only where it would otherwise read as 0 or 100 %.

    Examples:
        >>> percent(0.731), percent(0.9987), percent(0.004)
        ('73 %', '99.9 %', '0.4 %')
    """
    rounded = f"{100 * value:.0f}"
    return f"{100 * value:.1f} %" if rounded in ("0", "100") else f"{rounded} %"


def megabytes(count: int) -> str:
    """Write a number of bytes in megabytes.

    Examples:
        >>> megabytes(14_464_277), megabytes(1_092_520), megabytes(862_182_613)
        ('14.5 MB', '1.1 MB', '862 MB')
    """
    return f"{count / 1e6:.0f} MB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def clock(seconds: float) -> str:
    """Write a duration as a clock does.

    Examples:
        >>> clock(75), clock(3675)
        ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def type_name(value: object) -> str:
    """Describe the type of ``value`` and its contents.

    Examples:
        >>> type_name([1, "a"]), type_name({"x": 0}), type_name(0.5)
        ("a list of ['int', 'str']", "a dict with ['x']", 'a float')
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"a {type(value).__name__} of {[type(part).__name__ for part in value[:4]]}"
    if isinstance(value, Mapping):
        return f"a {type(value).__name__} with {list(value)[:8]}"
    return f"a {type(value).__name__}"


def did_you_mean(name: object, known: Iterable[str], otherwise: str | None = None) -> str:
    """Suggest the closest of the known names, or list them (or say ``otherwise``) if none is close.

    Examples:
        >>> did_you_mean("lamb", ["lam", "beta"])
        "Did you mean 'lam'?"
        >>> did_you_mean("x", ["lam", "beta"])
        'They are lam, beta.'
    """
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1)
    return f"Did you mean {near[0]!r}?" if near else otherwise or f"They are {', '.join(names)}."
