"""Several reliability diagrams in one figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.figure import Figure

from calibayes.displays import ReliabilityDisplay, reliability_grid
from calibayes.errors import InvalidArgumentError

PROBS = torch.tensor([[0.55, 0.45], [0.5625, 0.4375], [0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
TARGETS = torch.tensor([1, 1, 0, 0, 0, 0])


def display(name: str | None = None) -> ReliabilityDisplay:
    return ReliabilityDisplay.from_predictions(PROBS, TARGETS, bins=5, name=name, intervals=False)


@pytest.mark.parametrize(("n", "columns", "rows"), [(1, 2, 1), (2, 2, 1), (3, 2, 2), (4, 2, 2), (4, 3, 2), (4, 1, 4)])
def test_a_grid_places_its_diagrams_row_by_row(n: int, columns: int, rows: int) -> None:
    displays = [display(name=f"net {i}") for i in range(n)]
    figure = reliability_grid(displays, columns=columns)
    assert not plt.get_fignums()
    assert figure.axes == [one.ax_ for one in displays]
    corners = [one.ax_.get_position() for one in displays]
    assert len({round(box.y0, 6) for box in corners}) == rows
    assert len({round(box.x0, 6) for box in corners}) == min(n, columns)
    order = sorted(range(n), key=lambda i: (-round(corners[i].y0, 6), corners[i].x0))
    assert order == list(range(n))
    assert [one.ax_.get_title(loc="left") for one in displays] == [f"net {i}" for i in range(n)]


def test_a_grid_shares_its_axes_and_labels_the_outer_ones() -> None:
    other = ReliabilityDisplay.from_predictions(PROBS[:3], TARGETS[:3], bins=5, intervals=False)
    displays = [display(), other, display()]
    figure = reliability_grid(displays)
    assert {one.ax_.get_xlim() + one.ax_.get_ylim() for one in displays} == {(0, 1, 0, 1)}
    assert len({one.histogram_ax_.get_ylim() for one in displays}) == 1, "shares are compared on one scale"
    assert [one.ax_.get_ylabel() for one in displays] == ["accuracy", "", "accuracy"]
    assert [one.histogram_ax_.get_xlabel() for one in displays] == ["", "confidence", "confidence"]
    assert [[text.get_text() for text in legend.get_texts()] for legend in figure.legends] == [
        ["accuracy", "calibrated", "chance, all bars (95 %)"]
    ]
    assert all(one.ax_.get_legend() is None for one in displays)


@pytest.mark.parametrize("intervals", [True, False])
def test_panels_of_a_grid_do_not_overlap(intervals: bool, inside: Callable[[Figure], None]) -> None:
    displays = [
        ReliabilityDisplay.from_predictions(PROBS, TARGETS, bins=5, name=f"net {i}", intervals=intervals) for i in range(4)
    ]
    figure = reliability_grid(displays)
    inside(figure)
    boxes: list[Any] = [one.ax_.get_tightbbox() for one in displays]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
        ax = displays[i].ax_
        assert ax.texts[0].get_window_extent().width <= ax.get_window_extent().width, "the scores fit above their panel"


def test_a_grid_without_the_band() -> None:
    displays = [display(), display()]
    (legend,) = reliability_grid(displays, bands=False).legends
    assert "chance, all bars (95 %)" not in [text.get_text() for text in legend.get_texts()]
    assert {container.get_label() for one in displays for container in one.ax_.containers} == {"_accuracy", "_gap"}


@pytest.mark.parametrize("columns", [0, -1, 1.5, True])
def test_bad_columns_are_quoted(columns: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"`columns` to be a positive integer, but got {columns!r}"):
        reliability_grid([display()], columns=columns)


def test_an_empty_grid_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one display"):
        reliability_grid([])
