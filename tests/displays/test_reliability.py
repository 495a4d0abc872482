"""The pictures, looked at through the artists that make them up."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from calibayes.displays import ReliabilityDisplay, reliability_grid
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError
from calibayes.metrics import ece, evaluate, nll

# Confidences in the bins (0.4, 0.6], (0.6, 0.8] and (0.8, 1]: too sure, not sure enough, and exactly right.
PROBS = torch.tensor([[0.55, 0.45], [0.5625, 0.4375], [0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
TARGETS = torch.tensor([1, 1, 0, 0, 0, 0])


@pytest.fixture(autouse=True)
def _without_a_screen() -> Iterator[None]:
    mpl.use("Agg")
    yield
    plt.close("all")


def display(bins: int = 5, name: str | None = None) -> ReliabilityDisplay:
    return ReliabilityDisplay.from_predictions(PROBS, TARGETS, bins=bins, name=name)


def drawn(display: ReliabilityDisplay, ax: Axes | None = None) -> ReliabilityDisplay:
    return display.plot(ax if ax is not None else Figure(layout="constrained").add_subplot())


def bars(ax: Axes, label: str) -> list[Rectangle]:
    containers = [container for container in ax.containers if container.get_label() == label]
    return [patch for container in containers for patch in container if isinstance(patch, Rectangle)]


def texts(ax: Axes) -> str:
    return " ".join(text.get_text() for text in ax.texts)


def test_bars_are_the_accuracies_and_empty_bins_have_none() -> None:
    found = bars(drawn(display()).ax_, "_accuracy")
    assert [bar.get_x() for bar in found] == pytest.approx([0.4, 0.6, 0.8])
    assert [bar.get_width() for bar in found] == pytest.approx([0.2] * 3)
    assert [bar.get_height() for bar in found] == [0.0, 1.0, 1.0]


def test_gaps_reach_from_accuracy_to_confidence() -> None:
    found = bars(drawn(display()).ax_, "_gap")
    assert [bar.get_x() for bar in found] == pytest.approx([0.4, 0.6])  # none where confidence equals accuracy
    too_sure, not_sure_enough = found
    assert (too_sure.get_y(), too_sure.get_height()) == pytest.approx((0.0, 0.55625))
    assert (not_sure_enough.get_y(), not_sure_enough.get_height()) == pytest.approx((0.75, 0.25))
    assert too_sure.get_hatch() != not_sure_enough.get_hatch(), "told apart without colour"


@pytest.mark.parametrize("bins", [1, 10, 15, 40])
def test_the_ece_can_be_read_off_the_picture(bins: int) -> None:
    generator = torch.Generator().manual_seed(0)
    probs = (2 * torch.randn(500, 4, generator=generator, dtype=torch.float64)).softmax(-1)
    targets = torch.randint(4, (500,), generator=generator)
    shown = drawn(ReliabilityDisplay.from_predictions(probs, targets, bins=bins))
    share = {round(bar.get_x(), 9): bar.get_height() for bar in shown.histogram_ax_.patches}  # type: ignore[attr-defined]
    assert len(share) == bins
    assert sum(share.values()) == pytest.approx(1)
    weighted = sum(share[round(bar.get_x(), 9)] * bar.get_height() for bar in bars(shown.ax_, "_gap"))
    assert weighted == pytest.approx(ece(probs, targets, bins), abs=1e-12)


def test_the_diagonal() -> None:
    (line,) = drawn(display()).ax_.lines
    assert np.asarray(line.get_xydata()).tolist() == [[0, 0], [1, 1]]


def test_no_ece_without_the_other_scores() -> None:
    scores = evaluate(PROBS, TARGETS, bins=5)
    text = texts(drawn(display()).ax_)
    for part in (f"accuracy {scores.accuracy:.3f}", f"NLL {scores.nll:.3f}", f"Brier {scores.brier:.3f}"):
        assert part in text
    assert f"ECE {scores.ece:.3f}" in text


def test_infinite_nll_is_written() -> None:
    probs, targets = torch.tensor([[1.0, 0.0]]), torch.tensor([1])
    assert nll(probs, targets) == float("inf")
    assert "NLL ∞" in texts(drawn(ReliabilityDisplay.from_predictions(probs, targets)).ax_)


def test_from_predictions_computes_and_does_not_draw() -> None:
    before = plt.get_fignums()
    computed = display(name="net")
    assert plt.get_fignums() == before
    assert not hasattr(computed, "ax_")
    assert computed.scores == evaluate(PROBS, TARGETS, bins=5)
    assert computed.bins.count.tolist() == [0, 0, 2, 2, 2]


def test_axes_in_axes_out() -> None:
    ax = Figure().add_subplot()
    shown = display()
    assert shown.plot(ax) is shown
    assert shown.ax_ is ax
    assert shown.figure_ is ax.figure
    assert not plt.get_fignums(), "given axes, nothing is registered with pyplot"


def test_without_axes_a_figure_of_pyplot_is_made() -> None:
    shown = display(name="net").plot()
    assert plt.gcf() is shown.figure_
    assert len(plt.get_fignums()) == 1
    assert shown.ax_.get_title(loc="left") == "net"


def test_drawing_twice_gives_the_same_bars() -> None:
    shown = display()
    first = [bar.get_height() for bar in bars(drawn(shown).ax_, "_accuracy")]
    second = [bar.get_height() for bar in bars(drawn(shown).ax_, "_accuracy")]
    assert first == second


def inside(box: Any, figure: Figure) -> None:
    # The constrained layout stops iterating a pixel or two before it has converged.
    assert box.x0 >= -2
    assert box.y0 >= -2
    assert box.x1 <= figure.bbox.x1 + 2
    assert box.y1 <= figure.bbox.y1 + 2


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_everything_stays_inside_the_figure(layout: Any) -> None:
    figure = Figure(layout=layout)
    shown = drawn(display(name="net"), figure.add_subplot())
    figure.savefig(io.BytesIO())
    for ax in (shown.ax_, shown.histogram_ax_):
        inside(ax.get_tightbbox(), figure)


def test_a_small_diagram_breaks_the_line_of_scores() -> None:
    large = drawn(display(), Figure(figsize=(6, 6), layout="constrained").add_subplot())
    small = drawn(display(), Figure(figsize=(2.5, 3), layout="constrained").add_subplot())
    assert [text.get_text().count("\n") for shown in (large, small) for text in shown.ax_.texts] == [0, 1]


def legend_of(legend: Any) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def test_the_legend_names_what_is_there() -> None:
    assert legend_of(drawn(display()).ax_.get_legend()) == ["accuracy", "too sure", "not sure enough", "calibrated", "chance (95 %)"]
    wrong = ReliabilityDisplay.from_predictions(PROBS, 1 - TARGETS.clamp(max=0))
    assert legend_of(drawn(wrong).ax_.get_legend()) == ["accuracy", "too sure", "calibrated", "chance (95 %)"]
    assert display().plot(Figure().add_subplot(), legend=False).ax_.get_legend() is None


def test_it_draws_into_a_subfigure() -> None:
    parts: Any = Figure(layout="constrained").subfigures(1, 2)
    shown = [drawn(display(), part.add_subplot()) for part in parts]
    assert [one.figure_ for one in shown] == list(parts)


def test_bad_predictions_have_the_named_error_of_the_metrics() -> None:
    with pytest.raises(InvalidProbabilitiesError, match=r"sums to 0\.5"):
        ReliabilityDisplay.from_predictions(PROBS / 2, TARGETS)
    with pytest.raises(InvalidArgumentError, match="`bins` to be a positive integer, but got 0"):
        ReliabilityDisplay.from_predictions(PROBS, TARGETS, bins=0)


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
    other = ReliabilityDisplay.from_predictions(PROBS[:3], TARGETS[:3], bins=5)
    displays = [display(), other, display()]
    figure = reliability_grid(displays)
    assert {one.ax_.get_xlim() + one.ax_.get_ylim() for one in displays} == {(0, 1, 0, 1)}
    assert len({one.histogram_ax_.get_ylim() for one in displays}) == 1, "shares are compared on one scale"
    assert [one.ax_.get_ylabel() for one in displays] == ["accuracy", "", "accuracy"]
    assert [one.histogram_ax_.get_xlabel() for one in displays] == ["", "confidence", "confidence"]
    assert [legend_of(legend) for legend in figure.legends] == [["accuracy", "too sure", "not sure enough", "calibrated", "chance (95 %)"]]
    assert all(one.ax_.get_legend() is None for one in displays)


def test_panels_of_a_grid_do_not_overlap() -> None:
    displays = [display(name=f"net {i}") for i in range(4)]
    figure = reliability_grid(displays)
    figure.savefig(io.BytesIO())
    boxes: list[Any] = [one.ax_.get_tightbbox() for one in displays]
    for i, box in enumerate(boxes):
        inside(box, figure)
        assert not any(box.overlaps(other) for other in boxes[:i])
        ax = displays[i].ax_
        assert ax.texts[0].get_window_extent().width <= ax.get_window_extent().width, "the scores fit above their panel"


@pytest.mark.parametrize("columns", [0, -1, 1.5, True])
def test_bad_columns_are_quoted(columns: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"`columns` to be a positive integer, but got {columns!r}"):
        reliability_grid([display()], columns=columns)


def test_an_empty_grid_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one display"):
        reliability_grid([])


def test_importing_the_module_does_not_import_matplotlib() -> None:
    code = "import sys, calibayes.displays; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, check=False).returncode == 0
