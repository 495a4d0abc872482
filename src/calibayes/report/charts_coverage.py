"""The risk–coverage curves of the page: how often models err when they abstain on low confidence."""

from __future__ import annotations

import math
from typing import Any
from xml.etree.ElementTree import Element

from calibayes.report.charts import Scale, add, as_text, canvas, mark, model_class, symbol
from calibayes.report.page_numbers import key_of, percent

__all__ = ["coverage_chart", "legend_sample", "nearest"]

_WIDTH, _HEIGHT = 560, 340
_X = Scale(0, 1, 58, 524)
_TOP, _BOTTOM = 14, 284
_APART = 18  # between the letters at the ends of curves
_MARKS = tuple(tenths / 10 for tenths in range(1, 11))
_STEPS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25)


def coverage_chart(models: list[dict[str, Any]]) -> str:
    """The curves of all models on one chart, as SVG: each with its own colour, dash and symbol, and its letter at the end."""
    description = (
        "Horizontal: the fraction of examples answered, the most confident first. Vertical: the error rate among them. "
        "The arrow keys go from mark to mark; the table below the chart has the same numbers."
    )
    title = "Error rate among the most confident answers, by coverage"
    root = canvas(_WIDTH, _HEIGHT, "coverage", title, description, class_="chart coverage", role="group")
    worst = max((value for model in models for value in model["risk_coverage"]["risk"]), default=0.0)
    step = next((step for step in _STEPS if worst <= 5 * step), 0.25)
    # The highest line of the grid is the top of the chart: no curve runs above it.
    ticks = max(1, math.ceil(round(worst / step, 6)))
    up = Scale(0, ticks * step, _BOTTOM, _TOP)
    _axes(root, up, step, ticks)
    ends: list[float] = []
    for index, model in enumerate(models):
        curve = model["risk_coverage"]
        group = add(root, "g", class_=model_class(index))
        where = [(_X(x), up(y)) for x, y in zip(curve["coverage"], curve["risk"], strict=True)]
        if where:
            add(group, "path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in where), class_="curve")
            ends.append(where[-1][1])
    _end_labels(root, ends)
    _marks(root, models, up)
    return as_text(root)


def nearest(coverage: list[float], wanted: float) -> int | None:
    """Return the index of the point closest to a coverage; None if there is none within two percentage points.

    Examples:
        >>> nearest([0.1, 0.2, 0.31, 1.0], 0.3), nearest([0.1, 1.0], 0.5)
        (2, None)
    """
    index = min(range(len(coverage)), key=lambda place: abs(coverage[place] - wanted), default=None)
    return index if index is not None and abs(coverage[index] - wanted) <= 0.02 else None


def legend_sample(index: int) -> str:
    """A piece of a model's curve, for the legend."""
    root = Element("svg", {"viewBox": "0 0 44 14", "class": f"sample {model_class(index)}", "aria-hidden": "true"})
    add(root, "path", d="M1 7H43", class_="curve")
    symbol(root, 22, 7, index)
    return as_text(root)


def _marks(root: Element, models: list[dict[str, Any]], up: Scale) -> None:
    first = True
    for index, model in enumerate(models):
        curve = model["risk_coverage"]
        group = add(root, "g", class_=model_class(index))
        for wanted in _MARKS:
            place = nearest(curve["coverage"], wanted)
            if place is None:
                continue
            share, risk, threshold = (curve[name][place] for name in ("coverage", "risk", "threshold"))
            lines = [
                f"Model {key_of(index)}",
                f"answers {percent(share)}",
                f"wrong {percent(risk)} of these",
                f"confidence at least {percent(threshold)}",
            ]
            point = mark(group, lines, first=first)
            first = False
            add(point, "circle", cx=_X(share), cy=up(risk), r=9, class_="hit")
            symbol(point, _X(share), up(risk), index)


def _end_labels(root: Element, ends: list[float]) -> None:
    """Each model's letter at the end of its curve, moved apart where curves end close together."""
    order = sorted(range(len(ends)), key=ends.__getitem__)
    heights = [ends[index] for index in order]
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + _APART)
    for place in range(len(heights) - 1, -1, -1):
        limit = _BOTTOM if place == len(heights) - 1 else heights[place + 1] - _APART
        heights[place] = min(heights[place], limit)
    for index, height in zip(order, heights, strict=True):
        add(root, "text", key_of(index), x=_X(1) + 12, y=height + 5, class_="end", aria_hidden="true")


def _axes(root: Element, up: Scale, step: float, ticks: int) -> None:
    axes = add(root, "g", aria_hidden="true")
    decimals = 0 if step >= 0.01 else 1 if step >= 0.001 else 2
    for tick in range(ticks + 1):
        height = up(tick * step)
        add(axes, "path", d=f"M{_X(0)} {height:.2f}H{_X(1)}", class_="grid" if tick else "axis")
        text = f"{100 * tick * step:.{decimals}f}"
        add(axes, "text", text, x=_X(0) - 8, y=height + 4, text_anchor="end", class_="tick")
    for tenths in range(0, 11, 2):
        add(axes, "text", f"{10 * tenths}", x=_X(tenths / 10), y=_BOTTOM + 20, text_anchor="middle", class_="tick")
    label: dict[str, Any] = {"text_anchor": "middle", "class_": "label"}
    add(axes, "text", "answered %, most confident first", x=(_X(0) + _X(1)) / 2, y=_BOTTOM + 46, **label)
    middle = (_TOP + _BOTTOM) / 2
    add(axes, "text", "wrong %", x=15, y=middle, **label, transform=f"rotate(-90 15 {middle})")
