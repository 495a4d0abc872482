"""The section on prediction sets and certified thresholds: the rows of its tables, and the bars of set sizes."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

from calibayes.report.charts import Scale, add, as_text

__all__ = ["guarantees_view", "size_bar"]

_SIZES = 10  # sets of more classes are counted together
_WIDTH, _HEIGHT = 240, 20


def guarantees_view(guarantees: dict[str, Any] | None) -> dict[str, Any] | None:
    """The variables of the section for one model; None if there is nothing to show.

    Args:
        guarantees: the result of `Guarantees.to_dict`, as JSON has it.
    """
    if guarantees is None:
        return None
    sets = guarantees["sets"]
    measured = None if sets is None else sets["measured"]
    return {**guarantees, "size_rows": [] if measured is None else _size_rows(measured["size_counts"])}


def size_bar(share: float) -> str:
    """A bar of the share of sets that have a size, as SVG; the table has the number, so it is hidden from screen readers.

    Examples:
        >>> 'width="120"' in size_bar(0.5), 'width="0"' in size_bar(0.0)
        (True, True)
    """
    root = Element("svg", {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "class": "size-bar", "aria-hidden": "true"})
    add(root, "rect", x=0, y=2, width=Scale(0, 1, 0, _WIDTH)(share), height=_HEIGHT - 4)
    return as_text(root)


def _size_rows(counts: list[int]) -> list[dict[str, Any]]:
    """One row for each number of classes in a set, from one to the largest that occurs; the largest ones together."""
    total = sum(counts)
    largest = max((size for size, count in enumerate(counts) if count), default=1)
    rows = [(str(size), counts[size]) for size in range(1, min(largest, _SIZES) + 1)]
    if largest > _SIZES:
        rows.append((f"more than {_SIZES}", sum(counts[_SIZES + 1 :])))
    return [{"size": size, "count": count, "share": count / total, "bar": size_bar(count / total)} for size, count in rows]
