"""The style that all pictures share: colours that everyone can tell apart, sizes of text, and axes to draw into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "INK",
    "LINES",
    "ORANGE",
    "PALE_VERMILLION",
    "PURPLE",
    "SKY",
    "VERMILLION",
    "Line",
    "add_legend",
    "add_title",
    "axes_or_new",
    "finish",
    "is_small",
    "percent_axis",
    "side_in_inches",
    "spread",
    "stack_below",
    "width_in_inches",
]

# Okabe and Ito's colours, distinct for every kind of colour vision; their lightness differs too, for print in grey.
BLUE, SKY, VERMILLION = "#0072B2", "#A6D8F5", "#D55E00"
ORANGE, GREEN, PURPLE = "#E69F00", "#009E73", "#CC79A7"
PALE_VERMILLION = "#FBE3D3"
GREY, INK = "#7F7F7F", "#333333"

_LARGE = 2.9  # inches below which text is made smaller


class Line(NamedTuple):
    """The style of one of several curves: a colour and, for readers without colour, dashes and a marker."""

    color: str
    linestyle: Any
    marker: str

    def on(self, ax: Axes, *, markers: bool = False) -> dict[str, Any]:
        """The arguments of `Axes.plot`, thinner where there is little room; with a marker at every point if asked."""
        small = is_small(ax)
        look: dict[str, Any] = {"color": self.color, "linestyle": self.linestyle, "linewidth": 1.0 if small else 1.5}
        return look | {"marker": self.marker, "markersize": 2.5 if small else 4.0} if markers else look


LINES = (
    Line(BLUE, "-", "o"),
    Line(ORANGE, (0, (6, 1.5)), "s"),
    Line(INK, (0, (1.2, 1.2)), "^"),
    Line(GREEN, (0, (5, 1.5, 1.2, 1.5)), "D"),
    Line(PURPLE, (0, (3, 1.5)), "v"),
    Line(VERMILLION, (0, (6, 1.5, 1.2, 1.5, 1.2, 1.5)), "P"),
)
"""Curves in the order in which they are drawn; neighbours differ in lightness."""


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """``ax`` itself, or without one the axes of a new `matplotlib.pyplot` figure of that size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained").add_subplot()


def percent_axis(axis: Any) -> None:
    """Write the shares along an axis as percentages, with as many digits as its ticks need."""
    from matplotlib.ticker import FuncFormatter, PercentFormatter

    # The number of digits follows from the axis; below zero, in a mirrored histogram, shares are written without a sign.
    percent = PercentFormatter(1)
    percent.set_axis(axis)
    axis.set_major_formatter(FuncFormatter(lambda share, place: percent(abs(share), place)))


def side_in_inches(ax: Axes) -> float:
    """The shorter side of the axes."""
    return float(min(ax.bbox.width, ax.bbox.height) / ax.figure.dpi)


def width_in_inches(ax: Axes) -> float:
    """The width of the axes."""
    return float(ax.bbox.width / ax.figure.dpi)


def is_small(ax: Axes) -> bool:
    """Return True if text of the usual size would take up too much of the axes."""
    return width_in_inches(ax) < _LARGE


def finish(*axes: Axes) -> None:
    """Finish a panel: an open frame, and smaller text where there is little room."""
    for ax in axes:
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        if is_small(ax):
            ax.tick_params(labelsize="x-small")
            ax.xaxis.label.set_fontsize("small")
            ax.yaxis.label.set_fontsize("small")


def add_title(ax: Axes, title: str | None, *, pad: float | None = None) -> None:
    """Add a title above the left end of the axes; one that is too long for a line is wrapped."""
    if title:
        ax.set_title(title, loc="left", fontweight="bold", fontsize="small" if is_small(ax) else "large", pad=pad, wrap=True)


def add_legend(ax: Axes, handles: Sequence[Any], labels: Sequence[str], *, above: bool = False, title: str = "") -> None:
    """Add a legend that hides little: without a frame, in small text, and if asked in rows above the axes."""
    size, em = ("xx-small", 5.8) if is_small(ax) else ("small", 8.3)
    look: dict[str, Any] = {"loc": "best", "fontsize": size, "title_fontsize": size, "handlelength": 1.8, "alignment": "left"}
    if above:
        # A column holds the longest label, the handle and the space between; letters are about half as wide as high.
        column = em * (0.6 * max(map(len, labels)) + 3.8) / 72
        rows = math.ceil(len(labels) / max(1, int(width_in_inches(ax) / column)))
        look |= {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.1, "columnspacing": 1.2}
        look["ncols"] = math.ceil(len(labels) / rows)
    ax.legend(handles, labels, title=title or None, framealpha=0.8, edgecolor="none", **look)


def stack_below(ax: Axes, heights: Sequence[float]) -> list[Axes]:
    """Stack axes of these relative heights in the place of ``ax``, which becomes the first; return the others.

    They share the horizontal axis, and only the last one labels its ticks.
    """
    if len(heights) == 1:
        return []
    figure, spec = ax.figure, ax.get_subplotspec()
    if spec is not None:
        space = 0.4 if figure.get_layout_engine() is None else None  # a layout engine computes it
        grid = spec.subgridspec(len(heights), 1, height_ratios=heights, hspace=space)
        ax.set_subplotspec(grid[0])
        lower = [figure.add_subplot(cell, sharex=ax) for cell in list(grid)[1:]]  # type: ignore[call-overload]
    else:
        box, gap = ax.get_position(), 0.08
        unit = box.height * (1 - gap * (len(heights) - 1)) / sum(heights)
        tops = [box.y1 - unit * sum(heights[:i]) - gap * box.height * i for i in range(len(heights))]
        places = [(box.x0, top - unit * height, box.width, unit * height) for top, height in zip(tops, heights, strict=True)]
        ax.set_position(places[0])
        lower = [figure.add_axes(place, sharex=ax) for place in places[1:]]
    for upper in [ax, *lower[:-1]]:
        upper.tick_params(labelbottom=False)
    figure.align_ylabels([ax, *lower])
    return lower


def spread(places: Sequence[float], apart: float) -> list[float]:
    """Ascending places moved as little as possible, in least squares, to be at least that far apart.

    Examples:
        >>> spread([0.0, 1.0, 9.0], apart=3.0)
        [-1.0, 2.0, 9.0]
    """
    # Less the distance to keep, they only have to stay in order: those out of order get the mean of their group.
    groups: list[list[float]] = []
    for index, place in enumerate(places):
        groups.append([place - index * apart])
        while len(groups) > 1 and fmean(groups[-2]) > fmean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    kept = [fmean(group) for group in groups for _ in group]
    return [place + index * apart for index, place in enumerate(kept)]
