"""One row of the forest plot: a difference and its interval beside the line of no difference."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from calibayes.report.charts import Scale, add, as_text

__all__ = ["forest_row"]

_WIDTH, _HEIGHT = 200, 30


def forest_row(value: float, low: float, high: float, *, reach: float, clear: bool) -> str:
    """The row as SVG. The table draws the line of no difference behind it, through all rows.

    The numbers stand beside it in the table, so it is hidden from screen readers.

    Args:
        value: the difference, in the middle of the row if it is zero.
        low: where its interval starts.
        high: where its interval ends.
        reach: the number at the right end of the row; minus it is at the left.
        clear: the interval excludes zero; then the sign is filled.
    """
    kind = "clear" if clear else "unclear"
    root = Element("svg", {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "class": f"forest {kind}", "aria-hidden": "true"})
    x = Scale(-reach, reach, 8, _WIDTH - 8)
    middle = _HEIGHT / 2
    add(root, "path", d=f"M{x(low):.1f} {middle - 4:g}v8m0-4H{x(high):.1f}m0-4v8")
    # The style sheet makes the square 8 wide: a page may have hundreds of them.
    add(root, "rect", x=x(value) - 4, y=middle - 4)
    return as_text(root)
