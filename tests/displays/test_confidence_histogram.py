"""The histogram of confidence: its bars against counting, its lines against the metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.naive_bayes import GaussianNB
from torch import Tensor

from calibayes.displays import ConfidenceHistogramDisplay
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError
from calibayes.metrics import accuracy


def drawn(display: ConfidenceHistogramDisplay, **options: Any) -> Axes:
    return display.plot(Figure(layout="constrained").add_subplot(), **options).ax_


def heights(ax: Axes, label: str) -> dict[float, tuple[float, float]]:
    """The lower end and the height of each bar of one kind, by its left edge."""
    (container,) = [each for each in ax.containers if each.get_label() == label]
    return {round(bar.get_x(), 9): (bar.get_y(), bar.get_height()) for bar in container}


def line(ax: Axes, word: str) -> float:
    (mean,) = [each for each in ax.lines if str(each.get_label()).startswith(word)]
    return float(np.asarray(mean.get_xdata())[0])


def counted(probs: Tensor, targets: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    confidence, decision = probs.max(-1)
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1
    right = torch.bincount(place[decision == targets], minlength=bins)
    return right / len(targets), torch.bincount(place[decision != targets], minlength=bins) / len(targets)


@pytest.mark.parametrize("kind", ["stacked", "mirrored"])
def test_bars_are_the_shares_of_right_and_wrong(simulated: tuple[Tensor, Tensor], kind: str) -> None:
    right, wrong = counted(*simulated, bins=20)
    ax = drawn(ConfidenceHistogramDisplay.from_predictions(*simulated, bins=20), kind=kind)
    filled = [i for i in range(20) if right[i] + wrong[i] > 0]
    assert len(filled) < 20, "confidence is at least 1/K: the first bins are empty"
    lower, upper = heights(ax, "wrong"), heights(ax, "right")
    assert sorted(lower) == sorted(upper) == [round(i / 20, 9) for i in filled], "empty bins have no bars"
    for i in filled:
        left = round(i / 20, 9)
        sign = 1 if kind == "stacked" else -1
        assert lower[left] == pytest.approx((0, sign * float(wrong[i])))
        assert upper[left] == pytest.approx((float(wrong[i]) if kind == "stacked" else 0, float(right[i])))


def test_the_bars_add_up_to_everything(simulated: tuple[Tensor, Tensor]) -> None:
    ax = drawn(ConfidenceHistogramDisplay.from_predictions(*simulated))
    assert sum(height for label in ("right", "wrong") for _, height in heights(ax, label).values()) == pytest.approx(1)


def test_the_lines_are_accuracy_and_mean_confidence(simulated: tuple[Tensor, Tensor]) -> None:
    probs, targets = simulated
    ax = drawn(ConfidenceHistogramDisplay.from_predictions(probs, targets))
    mean = float(probs.amax(-1).mean())
    assert line(ax, "accuracy") == pytest.approx(accuracy(probs, targets))
    assert line(ax, "confidence") == pytest.approx(mean)
    (gap,) = [patch for patch in ax.patches if str(patch.get_label()).startswith("overconfident")]
    assert gap.get_label() == f"overconfident by {mean - accuracy(probs, targets):.3f}"
    assert (gap.get_x(), gap.get_width()) == pytest.approx((accuracy(probs, targets), mean - accuracy(probs, targets)))  # type: ignore[attr-defined]


def test_the_legend_names_the_colours_and_the_direction_of_the_gap() -> None:
    probs = torch.tensor([[0.6, 0.4], [0.7, 0.3]], dtype=torch.float64)
    legend: Any = drawn(ConfidenceHistogramDisplay.from_predictions(probs, torch.tensor([0, 0]))).get_legend()
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["right", "wrong", "accuracy 1.000", "confidence 0.650", "underconfident by 0.350"]
    assert drawn(ConfidenceHistogramDisplay.from_predictions(probs, torch.tensor([0, 0])), legend=False).get_legend() is None


def test_weights_count_examples_more_than_once(simulated: tuple[Tensor, Tensor]) -> None:
    probs, targets = simulated
    times = torch.arange(len(targets)) % 3
    weighted = ConfidenceHistogramDisplay.from_predictions(probs, targets, weights=times)
    repeated = ConfidenceHistogramDisplay.from_predictions(probs.repeat_interleave(times, 0), targets.repeat_interleave(times))
    assert weighted.right.tolist() == pytest.approx(repeated.right.tolist())
    assert weighted.wrong.tolist() == pytest.approx(repeated.wrong.tolist())
    assert weighted.confidence == pytest.approx(repeated.confidence)


def test_mirrored_shares_are_written_without_a_sign(simulated: tuple[Tensor, Tensor]) -> None:
    probs, targets = simulated
    ax = drawn(ConfidenceHistogramDisplay.from_predictions(probs, (targets + 1) % 10), kind="mirrored")
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]
    assert ax.get_ylim()[0] < -0.1, "nearly all decisions are wrong"
    written = [label.get_text() for label in ax.get_yticklabels()]
    assert len(written) > 2
    assert all(text.endswith("%") and text[:-1].replace(".", "").isdigit() for text in written)


def test_axes_in_axes_out(simulated: tuple[Tensor, Tensor]) -> None:
    ax = Figure().add_subplot()
    display = ConfidenceHistogramDisplay.from_predictions(*simulated, name="net")
    assert not hasattr(display, "ax_")
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_title(loc="left") == "net"
    assert not plt.get_fignums(), "given axes, nothing is registered with pyplot"
    assert display.plot().figure_ is plt.gcf()


@pytest.mark.parametrize("kind", ["stacked", "mirrored"])
@pytest.mark.parametrize(
    ("size", "layout"), [((2.2, 2.0), "constrained"), ((4.6, 3.4), "constrained"), ((6.4, 4.8), None), ((6.4, 4.8), "tight")]
)
def test_everything_stays_inside_the_figure(
    simulated: tuple[Tensor, Tensor], kind: Any, size: Any, layout: Any, inside: Callable[[Figure], None]
) -> None:
    figure = Figure(figsize=size, layout=layout)
    name = "a rather long name for a small picture"
    ConfidenceHistogramDisplay.from_predictions(*simulated, name=name).plot(figure.add_subplot(), kind=kind)
    inside(figure)


def test_from_estimator_is_from_predictions_of_its_probabilities() -> None:
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(200, 3))
    labels = np.where(inputs[:, 0] + generator.normal(size=200) > 0, "yes", "no")
    model = GaussianNB().fit(inputs, labels)
    display = ConfidenceHistogramDisplay.from_estimator(model, inputs, labels, bins=10)
    same = ConfidenceHistogramDisplay.from_predictions(model.predict_proba(inputs), (labels == "yes").astype(int), bins=10)
    assert display.name == "GaussianNB"
    assert display.right.tolist() == same.right.tolist()
    assert display.wrong.tolist() == same.wrong.tolist()
    assert display.accuracy == pytest.approx(model.score(inputs, labels))


def test_invalid_arguments_are_rejected(simulated: tuple[Tensor, Tensor]) -> None:
    probs, targets = simulated
    wrong_kind: Any = "overlaid"
    with pytest.raises(InvalidArgumentError, match=r"`kind` to be one of \('stacked', 'mirrored'\), but got 'overlaid'"):
        ConfidenceHistogramDisplay.from_predictions(probs, targets).plot(Figure().add_subplot(), kind=wrong_kind)
    with pytest.raises(InvalidProbabilitiesError, match="sum"):
        ConfidenceHistogramDisplay.from_predictions(probs / 2, targets)
