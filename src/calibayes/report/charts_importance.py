"""Bars of the importance of columns, one drawing for each row of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element

from calibayes.report.charts import Scale, add, as_text
from calibayes.report.page_numbers import NOISE, as_float

__all__ = ["importance_bar", "importance_scale"]

_WIDTH, _HEIGHT = 240, 30


def importance_scale(columns: Sequence[dict[str, Any]]) -> Scale | None:
    """The scale that holds zero and all intervals; None if there is nothing to draw.

    Examples:
        >>> scale = importance_scale([{"increase": 0.3, "low": -0.1, "high": 0.5}])
        >>> scale.low, scale.high
        (-0.1, 0.5)
    """
    ends = [as_float(each[name]) for each in columns for name in ("increase", "low", "high")]
    known = [end for end in ends if math.isfinite(end)]
    low, high = min([0.0, *known]), max([0.0, *known])
    return Scale(low, high, 4, _WIDTH - 6) if high - low > NOISE else None


def importance_bar(column: dict[str, Any], scale: Scale | None) -> str | None:
    """A bar from zero to the increase, with its interval, as SVG; hollow if the interval holds zero.

    The table has the numbers, so the bar is hidden from screen readers.
    """
    value, low, high = (as_float(column[name]) for name in ("increase", "low", "high"))
    if scale is None or not all(map(math.isfinite, (value, low, high))):
        return None
    kind = "clear" if low > 0 else "unclear"
    size = {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "preserveAspectRatio": "none"}  # as wide as its cell
    root = Element("svg", {**size, "class": f"importance-bar {kind}", "aria-hidden": "true"})
    left, right = sorted((scale(0), scale(value)))
    add(root, "rect", x=left, y=7, width=max(right - left, 0.5), height=16, class_="length")
    add(root, "path", d=f"M{scale(0):.1f} 0V{_HEIGHT}", class_="axis")
    add(root, "path", d=f"M{scale(low):.1f} 11v8m0-4H{scale(high):.1f}m0-4v8", class_="span")
    return as_text(root)
