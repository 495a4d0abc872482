"""Several reliability diagrams side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibayes.checks import positive_integer
from calibayes.displays.reliability import LINE, STRIP, ReliabilityDisplay, highest_share, legend_entries
from calibayes.errors import InvalidArgumentError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["reliability_grid"]

_SIDE = 3.0  # of a diagram, in inches


def reliability_grid(displays: Sequence[ReliabilityDisplay], *, columns: int = 2, bands: bool = True) -> Figure:
    """Several reliability diagrams in one picture, on the same axes, so that they can be compared.

    The figure is not registered with `matplotlib.pyplot`: show it as the value of a notebook's cell, or save it with
    ``figure.savefig(path)``.

    Args:
        displays: the diagrams, row by row.
        columns: how many stand side by side.
        bands: draw the band in which the bars would end if the confidence were right.

    Examples:
        >>> import torch
        >>> probs, targets = torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0])
        >>> sharp = ReliabilityDisplay.from_predictions(probs, targets, name="as it is")
        >>> flat = ReliabilityDisplay.from_predictions(probs.sqrt().softmax(-1), targets, name="flattened")
        >>> len(reliability_grid([sharp, flat]).axes)
        2
    """
    if not displays:
        raise InvalidArgumentError("Expected at least one display, but got none.")
    columns = min(positive_integer("columns", columns), len(displays))
    rows = math.ceil(len(displays) / columns)
    figure, places = _layout(rows, columns, max(len(display.score_lines(_SIDE)) for display in displays))
    highest = highest_share(displays)
    for index, (display, place) in enumerate(zip(displays, places, strict=False)):
        display._draw(figure.add_axes(place), highest, bands=bands)
        panels = (display.ax_, display.histogram_ax_)
        if index % columns:
            for panel in panels:
                panel.set_ylabel("")
                panel.tick_params(labelleft=False)
        if index + columns < len(displays):
            display.histogram_ax_.set_xlabel("")
            display.histogram_ax_.tick_params(labelbottom=False)
    figure.align_ylabels()
    handles, labels = legend_entries(displays, bands=bands)
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), fontsize="small", frameon=False)
    return figure


def _layout(rows: int, columns: int, lines: int) -> tuple[Figure, list[tuple[float, float, float, float]]]:
    """A figure and the place of each diagram in it, row by row; sizes are fixed in inches, so that text always fits."""
    from matplotlib.figure import Figure

    side, gap = _SIDE, 0.4
    left, right, top, bottom = 0.72, 0.15, 0.33 + lines * LINE * 8 / 72, 0.95  # top: name and scores; bottom: legend
    strip = STRIP * side
    width = left + columns * side + (columns - 1) * gap + right
    height = rows * (top + side + strip) + (rows - 1) * gap + bottom
    corners = [
        (left + column * (side + gap), bottom + strip + (rows - 1 - row) * (side + strip + gap + top))
        for row in range(rows)
        for column in range(columns)
    ]
    figure = Figure(figsize=(width, height))
    return figure, [(x / width, y / height, side / width, side / height) for x, y in corners]
