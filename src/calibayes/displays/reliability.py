"""The reliability diagram: confidence against accuracy, bin by bin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from calibayes.displays.style import (
    BLUE,
    GREY,
    INK,
    PALE_VERMILLION,
    SKY,
    VERMILLION,
    axes_or_new,
    open_frame,
    percent_axis,
    side_in_inches,
)
from calibayes.metrics import Array, ReliabilityBins, Scores, evaluate, reliability_bins

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["STRIP", "ReliabilityDisplay", "highest_share", "legend_entries"]

STRIP = 0.26  # how far below the diagram the histogram ends, as a share of the diagram's side
_ONE_LINE = 2.9  # inches that the scores need in one line; in a smaller diagram they would run into its neighbour

_ACCURACY: dict[str, Any] = {"facecolor": BLUE, "edgecolor": "white", "linewidth": 0.6}
_DIAGONAL: dict[str, Any] = {"color": INK, "linestyle": (0, (4, 3)), "linewidth": 1}
_TOO_SURE: dict[str, Any] = {"facecolor": PALE_VERMILLION, "edgecolor": VERMILLION, "linewidth": 0.6, "hatch": "////"}
_NOT_SURE_ENOUGH: dict[str, Any] = {"facecolor": SKY, "edgecolor": BLUE, "linewidth": 0.6, "hatch": "\\\\\\\\"}


class ReliabilityDisplay:
    """A reliability diagram: in each bin of confidence, how often the classifier is right.

    A bar shows the accuracy of the examples in its bin, and the hatched part how far that is from their mean confidence:
    above the bar where the classifier is too sure, at its top where it is not sure enough. Bars on the diagonal mean that
    the confidence can be taken at its word. The strip below shows how many examples lie in each bin, and the line above
    the scores, because the calibration error alone does not tell a good classifier from a useless one.

    Args:
        bins: what `reliability_bins` found.
        scores: what `evaluate` found on the same predictions.
        name: a title, such as the name of the classifier.

    Attributes:
        ax_: the axes of the diagram, once drawn.
        histogram_ax_: the axes of the strip below it, once drawn.
        figure_: the figure that holds them, once drawn.

    Example:
        >>> import torch
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]])
        >>> display = ReliabilityDisplay.from_predictions(probs, torch.tensor([0, 1, 1]), bins=5, name="coin")
        >>> display.bins.count.tolist()
        [0, 0, 1, 1, 1]
        >>> from matplotlib.figure import Figure
        >>> display.plot(Figure(layout="constrained").add_subplot()).ax_.get_title(loc="left")
        'coin'
    """

    ax_: Axes
    histogram_ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *, bins: ReliabilityBins, scores: Scores, name: str | None = None) -> None:
        self.bins = bins
        self.scores = scores
        self.name = name

    @classmethod
    def from_predictions(cls, probs: Array, targets: Array, *, bins: int = 15, name: str | None = None) -> Self:
        """Compute the diagram of a classifier's probabilities; `plot` draws it.

        Args:
            probs: class probabilities, shape ``[n, K]``, torch or numpy.
            targets: the true classes, integers of shape ``[n]``.
            bins: the number of bins, of equal width.
            name: a title, such as the name of the classifier.
        """
        scores = evaluate(probs, targets, bins)
        return cls(bins=reliability_bins(probs, targets, bins, check=False), scores=scores, name=name)

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> Self:
        """Draw the diagram.

        Args:
            ax: the axes to draw into, best of a figure with ``layout="constrained"``; without them, a new figure of
                `matplotlib.pyplot`, which notebooks show.
            legend: write what the colours mean.

        Returns:
            The display itself, with ``ax_``, ``histogram_ax_`` and ``figure_``.
        """
        ax = axes_or_new(ax, 4.2, 5.2)
        if ax.figure.get_layout_engine() is None:
            _make_room_below(ax)
        self._draw(ax, highest_share([self]))
        if legend:
            size = "small" if side_in_inches(ax) >= _ONE_LINE else "x-small"
            ax.legend(*legend_entries([self]), loc="best", fontsize=size, framealpha=0.8, edgecolor="none")
        return self

    def _draw(self, ax: Axes, highest: float) -> None:
        self.ax_, self.figure_ = ax, ax.figure
        ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy")
        ax.set_box_aspect(1)
        ax.tick_params(labelbottom=False)
        ax.plot([0, 1], [0, 1], zorder=4, label="_diagonal", **_DIAGONAL)
        self._draw_bars(ax)
        self._draw_histogram(ax, highest)
        lines = self._score_lines(side_in_inches(ax))
        ax.text(0, 1.02, "\n".join(lines), transform=ax.transAxes, fontsize=8, color=INK, va="bottom")
        if self.name:
            ax.set_title(self.name, loc="left", fontweight="bold", pad=8 + 12 * len(lines))
        open_frame(ax)

    def _draw_bars(self, ax: Axes) -> None:
        width = 1 / len(self.bins.count)
        for left, count, confidence, accuracy in zip(
            self.bins.edges[:-1].tolist(),
            self.bins.count.tolist(),
            self.bins.confidence.tolist(),
            self.bins.accuracy.tolist(),
            strict=True,
        ):
            if count == 0:
                continue
            ax.bar(left, accuracy, width, align="edge", label="_accuracy", zorder=2, **_ACCURACY)
            gap = confidence - accuracy
            if gap == 0:
                continue
            style = _TOO_SURE if gap > 0 else _NOT_SURE_ENOUGH
            ax.bar(left, abs(gap), width, min(accuracy, confidence), align="edge", label="_gap", zorder=3, **style)

    def _draw_histogram(self, ax: Axes, highest: float) -> None:
        from matplotlib.ticker import MaxNLocator

        strip = ax.inset_axes((0.0, -STRIP, 1.0, STRIP - 0.06), sharex=ax)
        share = (self.bins.count.double() / self.bins.n).tolist()
        width = 1 / len(share)
        strip.bar(self.bins.edges[:-1].tolist(), share, width, align="edge", color=GREY)
        strip.set(ylim=(0, 1.08 * highest), xlabel="confidence", ylabel="share")
        strip.yaxis.set_major_locator(MaxNLocator(2))
        percent_axis(strip.yaxis)
        strip.tick_params(labelbottom=True)
        open_frame(strip)
        self.histogram_ax_ = strip

    def _score_lines(self, inches: float) -> list[str]:
        scores = self.scores
        nll = "∞" if math.isinf(scores.nll) else f"{scores.nll:.3f}"
        words = [f"accuracy {scores.accuracy:.3f}", f"NLL {nll}", f"Brier {scores.brier:.3f}", f"ECE {scores.ece:.3f}"]
        return ["  ".join(words)] if inches >= _ONE_LINE else ["  ".join(words[:2]), "  ".join(words[2:])]


def legend_entries(displays: Sequence[ReliabilityDisplay]) -> tuple[list[Artist], list[str]]:
    """Handles and labels of what is to be seen in the diagrams, and no more."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: dict[str, Artist] = {"accuracy": Patch(**_ACCURACY)}
    if any(bool((display.bins.gap > 0).any()) for display in displays):
        entries["too sure"] = Patch(**_TOO_SURE)
    if any(bool((display.bins.gap < 0).any()) for display in displays):
        entries["not sure enough"] = Patch(**_NOT_SURE_ENOUGH)
    entries["calibrated"] = Line2D([], [], **_DIAGONAL)
    return list(entries.values()), list(entries)


def highest_share(displays: Sequence[ReliabilityDisplay]) -> float:
    """The largest share of examples in any bin: how high their histograms must reach."""
    return max(float(display.bins.count.max()) / display.bins.n for display in displays)


def _make_room_below(ax: Axes) -> None:
    """Shrink axes that no layout engine cares for, so that the histogram stays inside the place they had."""
    box = ax.get_position()
    height = box.height / (1 + STRIP)
    ax.set_position((box.x0, box.y1 - height, box.width, height))
    ax.set_in_layout(True)
