"""The course of training: the panels show the recorded values over shared epochs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import calibayes as cb
from calibayes.displays import HistoryDisplay
from calibayes.errors import InvalidArgumentError


def rows(epochs: int = 6, *, kl: float = 500.0, calibration: float = 0.4, validation: bool = True) -> list[dict[str, float]]:
    """Epochs as `fit` records them; the validation NLL is lowest in the fourth."""
    records = []
    for epoch in range(1, epochs + 1):
        row = {"epoch": float(epoch), "total": 2 / epoch, "cross_entropy": 1.5 / epoch, "lr": 0.001}
        row |= {"calibration": calibration / epoch, "kl": kl + 10 * epoch if kl else 0.0}
        if validation:
            row |= {"val_nll": 1 + 0.1 * abs(epoch - 4), "val_ece": 0.05 * epoch, "val_accuracy": 1 - 0.5 / epoch}
        records.append(row)
    return records


def curves(ax: Axes) -> dict[str, list[float]]:
    return {str(line.get_label()): list(np.asarray(line.get_ydata())) for line in ax.lines if line.get_label() != "_best"}


def best(ax: Axes) -> list[float]:
    return [float(np.asarray(line.get_xdata())[0]) for line in ax.lines if line.get_label() == "_best"]


def drawn(display: HistoryDisplay, **options: Any) -> HistoryDisplay:
    return display.plot(Figure(figsize=(5, 8), layout="constrained").add_subplot(), **options)


def test_every_curve_is_a_column_of_the_history() -> None:
    epochs = rows()
    shown = drawn(HistoryDisplay(epochs=epochs))
    expected = {
        "loss": {"total": "total", "cross-entropy": "cross_entropy", "validation NLL": "val_nll"},
        "aece": {"AECE": "calibration"},
        "kl": {"KL": "kl"},
        "ece": {"validation ECE": "val_ece"},
        "accuracy": {"validation accuracy": "val_accuracy"},
    }
    assert list(shown.axes_) == list(shown.panels) == list(expected)
    for name, columns in expected.items():
        assert curves(shown.axes_[name]) == {label: [row[column] for row in epochs] for label, column in columns.items()}
    assert [text.get_text() for text in shown.ax_.get_legend().get_texts()] == list(expected["loss"])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "panels"),
    [
        ({"kl": 0.0, "calibration": 0.0, "validation": False}, ["loss"]),
        ({"kl": 0.0, "validation": False}, ["loss", "aece"]),
        ({"calibration": 0.0}, ["loss", "kl", "ece", "accuracy"]),
    ],
)
def test_absent_terms_have_no_panel(options: dict[str, Any], panels: list[str]) -> None:
    shown = drawn(HistoryDisplay(epochs=rows(**options)))
    assert list(shown.axes_) == panels
    assert "validation NLL" in curves(shown.ax_) or "ece" not in panels


def test_panels_can_be_chosen() -> None:
    display = HistoryDisplay(epochs=rows())
    assert list(drawn(display, panels=["accuracy"]).axes_) == ["loss", "accuracy"]
    assert list(drawn(display, panels=[]).axes_) == ["loss"]
    with pytest.raises(InvalidArgumentError, match=r"`panels` to be among \('loss', .*\), but got 'brier'"):
        drawn(display, panels=["brier"])


def test_panels_share_the_axis_of_epochs_and_stand_below_each_other() -> None:
    shown = drawn(HistoryDisplay(epochs=rows()))
    shown.figure_.draw_without_rendering()  # type: ignore[union-attr]
    axes = list(shown.axes_.values())
    axes[0].set_xlim(2, 5)
    assert {ax.get_xlim() for ax in axes} == {(2, 5)}
    boxes = [ax.get_position() for ax in axes]
    assert all(upper.y0 > lower.y1 for upper, lower in pairwise(boxes))
    assert len({round(box.x0, 6) for box in boxes}) == 1
    assert [ax.get_xlabel() for ax in axes] == ["", "", "", "", "epoch"]
    assert boxes[0].height > boxes[1].height


@pytest.mark.parametrize(("layout", "in_a_grid"), [(None, True), (None, False), ("constrained", True)])
def test_the_panels_stay_in_the_place_of_the_axes(layout: Any, in_a_grid: bool) -> None:
    figure = Figure(figsize=(8, 8), layout=layout)
    ax = figure.subplots(2, 2)[0, 1] if in_a_grid else figure.add_axes((0.55, 0.55, 0.4, 0.4))
    place, others = ax.get_position(), [each for each in figure.axes if each is not ax]
    shown = HistoryDisplay(epochs=rows()).plot(ax)
    figure.draw_without_rendering()
    assert shown.ax_ is ax
    for panel in shown.axes_.values():
        box = panel.get_position()
        if layout is None:
            assert box.x0 == pytest.approx(place.x0)
            assert box.x1 == pytest.approx(place.x1)
            assert place.y0 - 1e-9 <= box.y0 < box.y1 <= place.y1 + 1e-9
        assert not any(other.get_position().overlaps(box) for other in others)


def test_the_best_epoch_is_marked_in_every_panel() -> None:
    kept = drawn(HistoryDisplay(epochs=rows(), best_epoch=2))
    assert [best(ax) for ax in kept.axes_.values()] == [[2.0]] * 5
    assert kept.ax_.get_title(loc="right") == "⋮ weights kept: epoch 2"
    display = drawn(HistoryDisplay(epochs=rows()))
    assert [best(ax) for ax in display.axes_.values()] == [[4.0]] * 5
    assert display.ax_.get_title(loc="right") == "⋮ lowest NLL: epoch 4"
    without = drawn(HistoryDisplay(epochs=rows(validation=False)))
    assert [best(ax) for ax in without.axes_.values()] == [[]] * 3
    assert without.ax_.get_title(loc="right") == ""


def test_an_infinite_nll_is_not_the_lowest() -> None:
    epochs = rows(2)
    epochs[0]["val_nll"] = float("inf")
    assert HistoryDisplay(epochs=epochs).lowest_nll == 2
    epochs[1]["val_nll"] = float("nan")
    assert HistoryDisplay(epochs=epochs).lowest_nll is None


def test_without_a_finished_epoch_the_picture_is_empty() -> None:
    ax = cb.History().plot(Figure().add_subplot())
    assert curves(ax) == {}
    assert ax.get_legend() is None
    assert ax.get_xlabel() == "epoch"


def test_a_single_epoch_has_points_and_a_whole_number() -> None:
    shown = drawn(HistoryDisplay(epochs=rows(1)))
    assert all(line.get_marker() != "None" for line in shown.ax_.lines if line.get_label() != "_best")
    low, high = shown.ax_.get_xlim()
    assert [tick for tick in shown.axes_["accuracy"].get_xticks() if low <= tick <= high] == [1]


def test_history_plot_draws_this_display() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs, labels = torch.randn(60, 3, generator=generator), torch.randint(3, (60,), generator=generator)
    train, valid = (inputs[:40], labels[:40]), (inputs[40:], labels[40:])
    history = cb.fit(cb.MeanField(torch.nn.Linear(3, 3)), train, cb.Objective(), epochs=3, validation=valid)
    figure = Figure(figsize=(5, 8))
    ax = figure.add_subplot()
    assert history.plot(ax) is ax
    same = drawn(HistoryDisplay.from_history(history))
    assert [curves(each) for each in figure.axes] == [curves(each) for each in same.axes_.values()]
    assert list(same.axes_) == ["loss", "aece", "kl", "ece", "accuracy"]


def test_any_terms_have_panels() -> None:
    terms = (cb.Calibration(), cb.Calibration(cb.MMCE(), name="ece"), cb.Calibration(cb.SBECE(), name="soft_bins"))
    data = torch.randn(60, 3), torch.arange(60) % 3
    objective = cb.Objective(loss=cb.Focal(), terms=terms)
    history = cb.fit(cb.MeanField(torch.nn.Linear(3, 3)), data, objective, epochs=3)
    shown = drawn(HistoryDisplay.from_history(history))
    assert list(shown.axes_) == ["loss", "aece", "training ece", "soft_bins", "kl"]
    assert list(curves(shown.ax_)) == ["total", "focal"]
    assert curves(shown.axes_["soft_bins"]) == {"soft bins": [row["soft_bins"] for row in history.epochs]}
    assert shown.axes_["soft_bins"].get_title(loc="left") == "training soft bins"


def test_axes_in_axes_out() -> None:
    display = HistoryDisplay(epochs=rows())
    ax = Figure().add_subplot()
    assert display.plot(ax) is display
    assert display.ax_ is ax is display.axes_["loss"]
    assert display.figure_ is ax.figure
    assert not plt.get_fignums(), "given axes, nothing is registered with pyplot"
    assert display.plot().figure_ is plt.gcf()


@pytest.mark.parametrize(("size", "layout"), [((2.2, 4.2), "constrained"), ((4.8, 6.8), "constrained"), ((6.4, 7), None)])
def test_everything_stays_inside_the_figure(size: Any, layout: Any, inside: Callable[[Figure], None]) -> None:
    figure = Figure(figsize=size, layout=layout)
    shown = HistoryDisplay(epochs=rows(30), best_epoch=17).plot(figure.add_subplot())
    inside(figure)
    boxes: list[Any] = [ax.get_tightbbox() for ax in shown.axes_.values()]
    for upper, lower in pairwise(boxes):
        assert upper.y0 >= lower.y1 - 2, "a panel's title stays clear of the panel above"
