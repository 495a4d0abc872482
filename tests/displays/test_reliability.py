"""The reliability diagram, looked at through the artists that make it up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from calibayes.displays import ReliabilityDisplay
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError
from calibayes.metrics import ece, evaluate, nll

# Confidences in the bins (0.4, 0.6], (0.6, 0.8] and (0.8, 1]: too sure, not sure enough, and exactly right.
PROBS = torch.tensor([[0.55, 0.45], [0.5625, 0.4375], [0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
TARGETS = torch.tensor([1, 1, 0, 0, 0, 0])


def display(bins: int = 5, name: str | None = None) -> ReliabilityDisplay:
    return ReliabilityDisplay.from_predictions(PROBS, TARGETS, bins=bins, name=name, intervals=False)


@pytest.fixture(scope="module")
def measured(simulated: tuple[Tensor, Tensor]) -> ReliabilityDisplay:
    """With the intervals of its scores, which take a while."""
    return ReliabilityDisplay.from_predictions(*simulated, name="net")


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


@pytest.mark.parametrize("bins", [1, 10, 15, 40])
def test_the_ece_can_be_read_off_the_picture(bins: int) -> None:
    generator = torch.Generator().manual_seed(0)
    probs = (2 * torch.randn(500, 4, generator=generator, dtype=torch.float64)).softmax(-1)
    targets = torch.randint(4, (500,), generator=generator)
    shown = drawn(ReliabilityDisplay.from_predictions(probs, targets, bins=bins, intervals=False))
    share = {round(bar.get_x(), 9): bar.get_height() for bar in shown.histogram_ax_.patches}  # type: ignore[attr-defined]
    assert len(share) == bins
    assert sum(share.values()) == pytest.approx(1)
    weighted = sum(share[round(bar.get_x(), 9)] * bar.get_height() for bar in bars(shown.ax_, "_gap"))
    assert weighted == pytest.approx(ece(probs, targets, bins), abs=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_band_is_where_the_bars_would_end_if_the_confidence_were_right(
    simulated: tuple[Tensor, Tensor], level: float
) -> None:
    made = ReliabilityDisplay.from_predictions(*simulated, intervals=False, level=level)
    low, high = made.bins.consistency_band(level)
    filled = made.bins.count > 0
    assert not bool(filled.all())
    found = bars(drawn(made).ax_, "_band")
    middles = (made.bins.edges[:-1] + made.bins.edges[1:])[filled] / 2
    assert [bar.get_x() + bar.get_width() / 2 for bar in found] == pytest.approx(middles.tolist())
    assert [bar.get_y() for bar in found] == pytest.approx(low[filled].tolist())
    assert [bar.get_y() + bar.get_height() for bar in found] == pytest.approx(high[filled].tolist())
    assert legend_of(drawn(made).ax_.get_legend())[-1] == f"chance, all bars ({100 * level:g} %)"


def test_the_band_can_be_left_out() -> None:
    ax = display().plot(Figure().add_subplot(), bands=False).ax_
    assert not bars(ax, "_band")
    assert legend_of(ax.get_legend())[-1] == "calibrated"


def test_empty_bins_have_no_patches() -> None:
    shown = drawn(display())
    assert shown.bins.count.tolist() == [0, 0, 2, 2, 2]
    places = [patch.get_x() for patch in shown.ax_.patches]  # type: ignore[attr-defined]
    assert places
    assert min(places) == pytest.approx(0.4)
    assert {container.get_label() for container in shown.ax_.containers} == {"_accuracy", "_gap", "_band"}


def test_weights_count_examples_more_than_once(simulated: tuple[Tensor, Tensor]) -> None:
    probs, targets = simulated
    times = torch.arange(len(targets)) % 4  # some do not count at all
    weighted = ReliabilityDisplay.from_predictions(probs, targets, weights=times, intervals=False)
    repeated = ReliabilityDisplay.from_predictions(
        probs.repeat_interleave(times, 0), targets.repeat_interleave(times), intervals=False
    )
    for label in ("_accuracy", "_gap"):
        seen = [[(bar.get_x(), *bar.get_bbox().bounds) for bar in bars(drawn(one).ax_, label)] for one in (weighted, repeated)]
        assert np.asarray(seen[0]) == pytest.approx(np.asarray(seen[1]))
    shares = [[bar.get_height() for bar in drawn(one).histogram_ax_.patches] for one in (weighted, repeated)]  # type: ignore[attr-defined]
    assert shares[0] == pytest.approx(shares[1])
    assert texts(drawn(weighted).ax_) == texts(drawn(repeated).ax_)


def test_a_bin_whose_examples_all_have_weight_zero_is_empty() -> None:
    weights = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    shown = drawn(ReliabilityDisplay.from_predictions(PROBS, TARGETS, bins=5, weights=weights, intervals=False))
    assert [bar.get_x() for bar in bars(shown.ax_, "_accuracy")] == pytest.approx([0.6, 0.8])


def test_the_diagonal() -> None:
    (line,) = drawn(display()).ax_.lines
    assert np.asarray(line.get_xydata()).tolist() == [[0, 0], [1, 1]]


def test_no_ece_without_the_other_scores() -> None:
    scores = evaluate(PROBS, TARGETS, bins=5, intervals=False)
    text = texts(drawn(display()).ax_)
    for part in (f"accuracy {scores.accuracy:.3f}", f"NLL {scores.nll:.3f}", f"Brier {scores.brier:.3f}"):
        assert part in text
    assert f"ECE {scores.ece:.3f}" in text


def test_the_ece_is_written_with_its_interval(simulated: tuple[Tensor, Tensor], measured: ReliabilityDisplay) -> None:
    low, high = measured.scores.intervals["ece"]
    assert low < high
    assert f"ECE {measured.scores.ece:.3f} ({low:.3f}–{high:.3f})" in texts(drawn(measured).ax_)
    without = ReliabilityDisplay.from_predictions(*simulated, intervals=False)
    assert texts(drawn(without).ax_).endswith(f"ECE {measured.scores.ece:.3f}")


def test_infinite_nll_is_written() -> None:
    probs, targets = torch.tensor([[1.0, 0.0]]), torch.tensor([1])
    assert nll(probs, targets) == float("inf")
    assert "NLL ∞" in texts(drawn(ReliabilityDisplay.from_predictions(probs, targets, intervals=False)).ax_)


def test_from_predictions_computes_and_does_not_draw() -> None:
    before = plt.get_fignums()
    computed = display(name="net")
    assert plt.get_fignums() == before
    assert not hasattr(computed, "ax_")
    assert computed.scores == evaluate(PROBS, TARGETS, bins=5, intervals=False)
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


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_everything_stays_inside_the_figure(layout: Any, inside: Callable[[Figure], None]) -> None:
    figure = Figure(layout=layout)
    drawn(display(name="net"), figure.add_subplot())
    inside(figure)


def test_a_small_diagram_breaks_the_line_of_scores() -> None:
    large = drawn(display(), Figure(figsize=(6, 6), layout="constrained").add_subplot())
    small = drawn(display(), Figure(figsize=(2.5, 3), layout="constrained").add_subplot())
    assert [text.get_text().count("\n") for shown in (large, small) for text in shown.ax_.texts] == [0, 1]


def legend_of(legend: Any) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def test_only_gaps_beyond_chance_are_coloured_and_named() -> None:
    """Two examples of a kind show nothing; forty do."""
    few = drawn(display())
    assert legend_of(few.ax_.get_legend()) == ["accuracy", "calibrated", "chance, all bars (95 %)"]
    many = drawn(ReliabilityDisplay.from_predictions(PROBS.repeat(20, 1), TARGETS.repeat(20), bins=5, intervals=False))
    coloured = ["accuracy", "overconfident", "underconfident", "calibrated", "chance, all bars (95 %)"]
    assert legend_of(many.ax_.get_legend()) == coloured
    plain, (over, under) = bars(few.ax_, "_gap"), bars(many.ax_, "_gap")
    assert all(tuple(bar.get_facecolor())[-1] == 0 for bar in plain), "an outline"
    assert over.get_facecolor() != under.get_facecolor()
    assert display().plot(Figure().add_subplot(), legend=False).ax_.get_legend() is None


def test_no_bar_is_coloured_where_the_test_of_calibration_does_not_reject() -> None:
    found = ReliabilityDisplay.from_predictions(PROBS.repeat(20, 1), TARGETS.repeat(20), bins=5, intervals=False)
    same = ReliabilityDisplay(bins=found.bins, scores=replace(found.scores, kce_p_value=0.06))
    assert all(tuple(bar.get_facecolor())[-1] == 0 for bar in bars(drawn(same).ax_, "_gap"))
    assert "overconfident" not in legend_of(same.ax_.get_legend())


@pytest.mark.parametrize(("width", "height"), [(2.2, 3.2), (4.2, 5.6), (6.4, 4.8), (3.0, 3.0)])
def test_with_intervals_everything_stays_inside_too(
    measured: ReliabilityDisplay, width: float, height: float, inside: Callable[[Figure], None]
) -> None:
    figure = Figure(figsize=(width, height), layout="constrained")
    shown = drawn(measured, figure.add_subplot())
    inside(figure)
    scores = shown.ax_.texts[0].get_window_extent()
    (title,) = [text for text in shown.ax_.findobj(Text) if text.get_text() == "net"]
    assert not scores.overlaps(title.get_window_extent())
    if height > width:  # otherwise the layout makes the diagram much narrower than its place
        assert scores.width <= shown.ax_.get_window_extent().width


def test_from_estimator_is_from_predictions_of_its_probabilities() -> None:
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(300, 4))
    animals = np.array(["cat", "ant", "bee"])[(inputs + generator.normal(size=(300, 4)))[:, :3].argmax(-1)]
    model = LogisticRegression().fit(inputs[:150], animals[:150])
    weights = generator.uniform(size=150)
    made = ReliabilityDisplay.from_estimator(model, inputs[150:], animals[150:], bins=7, weights=weights)
    numbers = np.searchsorted(np.array(["ant", "bee", "cat"]), animals[150:])
    same = ReliabilityDisplay.from_predictions(model.predict_proba(inputs[150:]), numbers, bins=7, weights=weights)
    assert made.scores == same.scores
    assert texts(drawn(made).ax_) == texts(drawn(same).ax_)
    assert [bar.get_bbox().bounds for bar in bars(drawn(made).ax_, "_accuracy")] == [
        bar.get_bbox().bounds for bar in bars(drawn(same).ax_, "_accuracy")
    ]
    assert made.scores.accuracy == pytest.approx(model.score(inputs[150:], animals[150:], weights))
    assert (made.name, same.name) == ("LogisticRegression", None)


def test_it_draws_into_a_subfigure() -> None:
    parts: Any = Figure(layout="constrained").subfigures(1, 2)
    shown = [drawn(display(), part.add_subplot()) for part in parts]
    assert [one.figure_ for one in shown] == list(parts)


def test_bad_predictions_have_the_named_error_of_the_metrics() -> None:
    with pytest.raises(InvalidProbabilitiesError, match=r"sums to 0\.5"):
        ReliabilityDisplay.from_predictions(PROBS / 2, TARGETS)
    with pytest.raises(InvalidArgumentError, match="`bins` to be a positive integer, but got 0"):
        ReliabilityDisplay.from_predictions(PROBS, TARGETS, bins=0)
