"""The risk-coverage curve against counting by hand, alone and with several models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from calibayes.displays import RiskCoverageDisplay
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import accuracy, aurc


def drawn(display: RiskCoverageDisplay, **options: Any) -> Axes:
    return display.plot(Figure(figsize=(6, 4), layout="constrained").add_subplot(), **options).ax_


def curves(ax: Axes) -> list[list[list[float]]]:
    return [np.asarray(line.get_xydata()).tolist() for line in ax.lines if line.get_gid() == "risk-coverage"]


def legend_of(ax: Axes) -> list[str]:
    legend: Any = ax.get_legend()
    return [text.get_text() for text in legend.get_texts()]


def flattened(probs: Tensor) -> Tensor:
    """A worse classifier: the probabilities of every second example are those of the one before."""
    return probs.clone().index_copy_(0, torch.arange(1, len(probs), 2), probs[:-1:2])


def test_the_curve_is_the_error_rate_among_the_most_confident() -> None:
    probs = torch.tensor([[0.55, 0.45], [0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], dtype=torch.float64)
    ((*points,),) = curves(drawn(RiskCoverageDisplay.from_predictions(probs, torch.tensor([0, 0, 0, 1]))))
    assert np.asarray(points) == pytest.approx(np.array([[0.25, 0], [0.5, 1 / 2], [0.75, 2 / 3], [1, 1 / 2]]))


def test_full_coverage_is_marked_with_the_error(simulated: tuple[Tensor, Tensor]) -> None:
    probs, targets = simulated
    display = RiskCoverageDisplay.from_predictions(probs, targets)
    ax = drawn(display)
    error = 1 - accuracy(probs, targets)
    assert display.error == pytest.approx(error)
    (mark,) = [line for line in ax.lines if line.get_label() == "_error"]
    assert np.asarray(mark.get_xydata()).tolist() == [[1.0, pytest.approx(error)]]
    assert [text.get_text() for text in ax.texts] == [f"{display.error:.1%}"]
    assert ax.get_ylim()[1] > error


def test_the_legend_has_the_aurc(simulated: tuple[Tensor, Tensor]) -> None:
    probs, targets = simulated
    display = RiskCoverageDisplay.from_predictions(probs, targets, name="net")
    assert legend_of(drawn(display)) == [f"net: AURC {aurc(probs, targets):.3f}"]
    assert legend_of(drawn(display, name="other")) == [f"other: AURC {aurc(probs, targets):.3f}"]
    assert legend_of(drawn(RiskCoverageDisplay.from_predictions(probs, targets))) == [f"AURC {aurc(probs, targets):.3f}"]
    assert drawn(display, legend=False).get_legend() is None


def test_a_target_shows_the_coverage_that_reaches_it(simulated: tuple[Tensor, Tensor]) -> None:
    probs, targets = simulated
    display = RiskCoverageDisplay.from_predictions(probs, targets, target_accuracy=0.95)
    confidence, decision = probs.max(-1)
    right = (decision == targets)[confidence.argsort(descending=True)].double()
    rate = right.cumsum(0) / torch.arange(1, len(right) + 1)
    reached = float((rate >= 0.95).nonzero().max() + 1) / len(right)
    assert display.coverage == pytest.approx(reached)
    ax = drawn(display)
    (target,) = [line for line in ax.lines if line.get_gid() == "target-accuracy"]
    assert np.asarray(target.get_ydata()).tolist() == pytest.approx([0.05, 0.05])
    (drop,) = [each for each in ax.collections if each.get_label() == "_coverage"]
    assert drop.get_segments()[0] == pytest.approx(np.array([[reached, 0], [reached, 0.05]]))  # type: ignore[attr-defined]
    assert legend_of(ax) == [f"AURC {aurc(probs, targets):.3f}, answers {reached:.1%}", "accuracy 95%"]


def test_a_target_out_of_reach_has_no_coverage() -> None:
    probs = torch.tensor([[0.9, 0.1], [0.8, 0.2]], dtype=torch.float64)
    display = RiskCoverageDisplay.from_predictions(probs, torch.tensor([1, 1]), target_accuracy=0.9)
    ax = drawn(display)
    assert display.coverage == 0
    assert not [each for each in ax.collections if each.get_label() == "_coverage"]
    assert "answers 0.0%" in legend_of(ax)[0]


def test_several_models_on_the_same_axes(simulated: tuple[Tensor, Tensor]) -> None:
    probs, targets = simulated
    ax = Figure(layout="constrained").add_subplot()
    displays = [
        RiskCoverageDisplay.from_predictions(each, targets, name=name, target_accuracy=0.9).plot(ax)
        for name, each in {"worse": flattened(probs), "net": probs, "again": probs}.items()
    ]
    assert all(display.ax_ is ax for display in displays)
    assert len(curves(ax)) == 3
    assert [word.split(":")[0] for word in legend_of(ax)] == ["worse", "net", "again", "accuracy 90%"], "one line of the target"
    assert ax.get_ylim()[1] > displays[0].error > displays[1].error, "the scale holds them all"
    lines = [line for line in ax.lines if line.get_gid() == "risk-coverage"]
    assert len({line.get_color() for line in lines}) == 3
    assert len({str(line.get_linestyle()) + str(line._dash_pattern) for line in lines}) == 3, "distinguished without colour"  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [2.2, 6.0])
def test_errors_that_are_close_are_written_clear_of_each_other(
    simulated: tuple[Tensor, Tensor], width: float, inside: Callable[[Figure], None]
) -> None:
    probs, targets = simulated
    figure = Figure(figsize=(width, 2.4 if width < 3 else 4), layout="constrained")
    ax = figure.add_subplot()
    for i in range(4):
        RiskCoverageDisplay.from_predictions(probs[i:], targets[i:], name=f"net {i}").plot(ax)
    inside(figure)
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 4
    for i, box in enumerate(boxes):
        # Half a pixel of the margin around the letters may be shared.
        assert all(box.y0 >= other.y1 - 0.5 or box.y1 <= other.y0 + 0.5 for other in boxes[:i])


def test_a_few_confident_errors_do_not_set_the_scale(simulated: tuple[Tensor, Tensor]) -> None:
    probs, targets = simulated
    sure = torch.eye(10, dtype=torch.float64)[:1]
    less_sure = 0.9 * probs + 0.01
    ax = drawn(RiskCoverageDisplay.from_predictions(torch.cat((sure, less_sure)), torch.cat((torch.tensor([1]), targets))))
    ((first, *_),) = curves(ax)
    assert first[1] == 1, "the surest answer is wrong"
    assert ax.get_ylim()[1] < 0.6


def test_many_examples_are_drawn_with_few_points(simulated: tuple[Tensor, Tensor]) -> None:
    display = RiskCoverageDisplay.from_predictions(*simulated)
    ((*points,),) = curves(drawn(display))
    every = set(zip(display.curve.coverage.tolist(), display.curve.risk.tolist(), strict=True))
    assert len(every) > 1000 >= len(points)
    assert {(x, y) for x, y in points} <= every
    assert points[-1] == [1, display.error]


def test_weights_count_examples_more_than_once(simulated: tuple[Tensor, Tensor]) -> None:
    probs, targets = simulated
    times = torch.arange(len(targets)) % 3
    weighted = RiskCoverageDisplay.from_predictions(probs, targets, weights=times, target_accuracy=0.9)
    repeated = RiskCoverageDisplay.from_predictions(
        probs.repeat_interleave(times, 0), targets.repeat_interleave(times), target_accuracy=0.9
    )
    assert (weighted.error, weighted.coverage) == pytest.approx((repeated.error, repeated.coverage))


def test_axes_in_axes_out(simulated: tuple[Tensor, Tensor]) -> None:
    ax = Figure().add_subplot()
    display = RiskCoverageDisplay.from_predictions(*simulated)
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert not plt.get_fignums(), "given axes, nothing is registered with pyplot"
    assert display.plot().figure_ is plt.gcf()


@pytest.mark.parametrize(("size", "layout"), [((2.2, 2.2), "constrained"), ((4.6, 3.4), "constrained"), ((6.4, 4.8), None)])
@pytest.mark.parametrize("target", [None, 0.95])
def test_everything_stays_inside_the_figure(
    simulated: tuple[Tensor, Tensor], size: Any, layout: Any, target: Any, inside: Callable[[Figure], None]
) -> None:
    figure = Figure(figsize=size, layout=layout)
    ax = figure.add_subplot()
    for name in ("FNN", "CA-BNN"):
        RiskCoverageDisplay.from_predictions(*simulated, name=name, target_accuracy=target).plot(ax)
    inside(figure)


def test_from_estimator_is_from_predictions_of_its_probabilities() -> None:
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(200, 3))
    labels = np.array(["b", "c", "a"])[(inputs + generator.normal(size=(200, 3))).argmax(-1)]
    model = LogisticRegression().fit(inputs, labels)
    display = RiskCoverageDisplay.from_estimator(model, inputs, labels, target_accuracy=0.8)
    numbers = np.array([["a", "b", "c"].index(label) for label in labels])
    same = RiskCoverageDisplay.from_predictions(model.predict_proba(inputs), numbers, target_accuracy=0.8)
    assert curves(drawn(display)) == curves(drawn(same))
    assert display.error == pytest.approx(1 - model.score(inputs, labels))
    assert legend_of(drawn(display))[0].startswith("LogisticRegression: AURC")


@pytest.mark.parametrize("target", [0, 1, 95, -0.5, float("nan")])
def test_bad_targets_are_quoted(simulated: tuple[Tensor, Tensor], target: float) -> None:
    with pytest.raises(InvalidArgumentError, match=f"`target_accuracy` to be above 0 and below 1, but got {target!r}"):
        RiskCoverageDisplay.from_predictions(*simulated, target_accuracy=target)
