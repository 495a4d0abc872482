"""Formatting of numbers and names on the page: rounded for people, exact for machines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

__all__ = [
    "NOISE",
    "Number",
    "as_float",
    "count",
    "exact",
    "key_of",
    "percent",
    "places",
    "points",
    "rounded",
    "sentence",
    "signed",
]

# A number of the study as in JSON: null if unknown, a string if infinite.
Number = float | int | str | None

_NO_BREAK = "\u00a0"
_MOST_DECIMALS = 5
NOISE = 1e-12  # rounding makes differences of equal numbers smaller than this; differences that matter are larger
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def as_float(value: Number) -> float:
    """The number as a float; NaN if it is unknown.

    Examples:
        >>> as_float(0.5), as_float("Infinity"), as_float(None)
        (0.5, inf, nan)
    """
    return math.nan if value is None else float(value)


def exact(value: Number) -> str:
    """The number as in JSON, for the ``data-value`` attribute.

    Examples:
        >>> exact(0.1), exact(None), exact("Infinity")
        ('0.1', 'null', 'Infinity')
    """
    return "null" if value is None else value if isinstance(value, str) else repr(value)


def rounded(value: Number, decimals: int | None = None) -> str:
    """The number for people, with this many decimals, three by default.

    With fewer than five given, a number too small for them is shown as zero, because its interval is wider; otherwise it is
    shown as a power of ten.

    Examples:
        >>> rounded(0.08149), rounded(-0.25, 2), rounded(0.000012), rounded(-0.000012, 3), rounded(None), rounded("Infinity")
        ('0.081', '−0.25', '1.2·10⁻⁵', '0.000', '–', '∞')
    """
    number = as_float(value)
    if math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    text = f"{number:.{3 if decimals is None else decimals}f}"
    if float(text) == 0:
        if number == 0 or decimals in range(_MOST_DECIMALS):
            return text.lstrip("-")
        mantissa, exponent = f"{number:.1e}".split("e")
        text = f"{mantissa}·10{str(int(exponent)).translate(_SUPERSCRIPT)}"
    return text.replace("-", "−")


def signed(value: Number, decimals: int | None = None) -> str:
    """A difference, with its sign; one that only rounding makes is shown as zero.

    Examples:
        >>> signed(0.021), signed(-0.021), signed(0.0), signed(-1e-18)
        ('+0.021', '−0.021', '0.000', '0.000')
    """
    text = rounded(0.0 if abs(as_float(value)) < NOISE else value, decimals)
    return f"+{text}" if as_float(value) > 0 and text.strip("0.") else text


def percent(value: Number, decimals: int = 1, *, sign: bool = True) -> str:
    """A share or a probability in per cent, with the sign % or, under a heading that has it, without.

    Examples:
        >>> percent(0.9812).split(), percent(0.9812, 2, sign=False), percent(None)
        (['98.1', '%'], '98.12', '–')
    """
    number = as_float(value)
    if not math.isfinite(number):
        return rounded(value)
    return f"{100 * number:.{decimals}f}" + (f"{_NO_BREAK}%" if sign else "")


def points(value: Number, decimals: int = 1) -> str:
    """A difference of two shares in percentage points.

    Examples:
        >>> points(0.0312), points(-0.004)
        ('+3.1', '−0.4')
    """
    number = 100 * as_float(value)
    text = f"{number:+.{decimals}f}"
    return "–" if math.isnan(number) else text.replace("-", "−") if float(text) else f"{0:.{decimals}f}"


def count(value: int) -> str:
    """An integer with thousands separators.

    Examples:
        >>> count(3121)
        '3,121'
    """
    return f"{value:,}"


def places(half_widths: Iterable[float]) -> int | None:
    """The number of decimals that the narrowest interval warrants, three to five; None if no interval is known.

    Examples:
        >>> places([0.009, 0.012]), places([0.0004]), places([float("nan")])
        (3, 4, None)
    """
    known = [width for width in half_widths if math.isfinite(width) and width > NOISE]
    return min(_MOST_DECIMALS, max(3, math.ceil(-math.log10(min(known))))) if known else None


def sentence(text: str) -> str:
    """A sentence with names and numbers, made safe for the page.

    Characters that change the direction of writing are left out, because one in a name would reverse the rest, and a number
    stays on one line with its %.

    Examples:
        >>> sentence("the model \u202ered says 90 %") == "the model red says 90\u00a0%"
        True
    """
    return _DIRECTIONS.sub("", text).replace(" %", f"{_NO_BREAK}%")


def key_of(index: int) -> str:
    """The letter that stands for a model in tables and charts.

    Examples:
        >>> key_of(0), key_of(25), key_of(26)
        ('A', 'Z', 'AA')
    """
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
