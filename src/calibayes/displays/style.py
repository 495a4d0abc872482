"""What all pictures share: colours that everyone can tell apart, sizes of text, and axes to draw into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BLUE",
    "GREY",
    "INK",
    "LINES",
    "PALE_VERMILLION",
    "SKY",
    "VERMILLION",
    "Line",
    "axes_or_new",
    "open_frame",
    "percent_axis",
    "side_in_inches",
    "text_size",
    "width_in_inches",
]

# Okabe and Ito's colours, told apart with every kind of colour vision; their lightness differs too, for print in grey.
BLUE, SKY, VERMILLION = "#0072B2", "#A6D8F5", "#D55E00"
ORANGE, GREEN, PURPLE = "#E69F00", "#009E73", "#CC79A7"
PALE_VERMILLION = "#FBE3D3"
GREY, INK = "#7F7F7F", "#333333"

_LARGE = 2.9  # inches below which text is made smaller


class Line(NamedTuple):
    """How one of several curves is told from the others: by colour, and without colour by dashes and marker."""

    color: str
    linestyle: Any
    marker: str


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


def open_frame(ax: Axes) -> None:
    """Leave out the frame's upper and right side, which carry nothing."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def percent_axis(axis: Any) -> None:
    """Write the shares along an axis as percentages, with as many digits as its ticks need."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1))


def side_in_inches(ax: Axes) -> float:
    """The shorter side of the axes."""
    return float(min(ax.bbox.width, ax.bbox.height) / ax.figure.dpi)


def width_in_inches(ax: Axes) -> float:
    """The width of the axes."""
    return float(ax.bbox.width / ax.figure.dpi)


def text_size(ax: Axes) -> str:
    """The size of text inside the axes: smaller where there is little room."""
    return "small" if width_in_inches(ax) >= _LARGE else "x-small"
