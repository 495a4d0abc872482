"""Pictures of how far confidence can be trusted. matplotlib is imported when the first one is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from calibayes.errors import InvalidArgumentError
from calibayes.metrics import Array, ReliabilityBins, Scores, evaluate, reliability_bins

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["ReliabilityDisplay", "reliability_grid"]

# Okabe and Ito's colours, told apart with every kind of colour vision; their lightness differs too, for print in grey.
_BLUE, _SKY, _VERMILLION = "#0072B2", "#A6D8F5", "#D55E00"
_PALE_VERMILLION = "#FBE3D3"
_GREY, _INK = "#7F7F7F", "#333333"

_STRIP = 0.26  # how far below the diagram the histogram ends, as a share of the diagram's side
_ONE_LINE = 2.9  # inches that the scores need in one line; in a smaller diagram they would run into its neighbour

_ACCURACY: dict[str, Any] = {"facecolor": _BLUE, "edgecolor": "white", "linewidth": 0.6}
_DIAGONAL: dict[str, Any] = {"color": _INK, "linestyle": (0, (4, 3)), "linewidth": 1}
_TOO_SURE: dict[str, Any] = {"facecolor": _PALE_VERMILLION, "edgecolor": _VERMILLION, "linewidth": 0.6, "hatch": "////"}
_NOT_SURE_ENOUGH: dict[str, Any] = {"facecolor": _SKY, "edgecolor": _BLUE, "linewidth": 0.6, "hatch": "\\\\\\\\"}


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
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure(figsize=(4.2, 5.2), layout="constrained").add_subplot()
        elif ax.figure.get_layout_engine() is None:
            _make_room_below(ax)
        self._draw(ax, _highest_share([self]))
        if legend:
            size = "small" if _side_in_inches(ax) >= _ONE_LINE else "x-small"
            ax.legend(*_legend([self]), loc="best", fontsize=size, framealpha=0.8, edgecolor="none")
        return self

    def _draw(self, ax: Axes, highest_share: float) -> None:
        self.ax_, self.figure_ = ax, ax.figure
        ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy")
        ax.set_box_aspect(1)
        ax.tick_params(labelbottom=False)
        ax.plot([0, 1], [0, 1], zorder=4, label="_diagonal", **_DIAGONAL)
        self._draw_bars(ax)
        self._draw_histogram(ax, highest_share)
        lines = self._score_lines(_side_in_inches(ax))
        ax.text(0, 1.02, "\n".join(lines), transform=ax.transAxes, fontsize=8, color=_INK, va="bottom")
        if self.name:
            ax.set_title(self.name, loc="left", fontweight="bold", pad=8 + 12 * len(lines))
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)

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

    def _draw_histogram(self, ax: Axes, highest_share: float) -> None:
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        strip = ax.inset_axes((0.0, -_STRIP, 1.0, _STRIP - 0.06), sharex=ax)
        share = (self.bins.count.double() / self.bins.n).tolist()
        width = 1 / len(share)
        strip.bar(self.bins.edges[:-1].tolist(), share, width, align="edge", color=_GREY)
        strip.set(ylim=(0, 1.08 * highest_share), xlabel="confidence", ylabel="share")
        strip.yaxis.set_major_locator(MaxNLocator(2))
        strip.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        strip.tick_params(labelbottom=True)
        for side in ("top", "right"):
            strip.spines[side].set_visible(False)
        self.histogram_ax_ = strip

    def _score_lines(self, inches: float) -> list[str]:
        scores = self.scores
        nll = "∞" if math.isinf(scores.nll) else f"{scores.nll:.3f}"
        words = [f"accuracy {scores.accuracy:.3f}", f"NLL {nll}", f"Brier {scores.brier:.3f}", f"ECE {scores.ece:.3f}"]
        return ["  ".join(words)] if inches >= _ONE_LINE else ["  ".join(words[:2]), "  ".join(words[2:])]


def reliability_grid(displays: Sequence[ReliabilityDisplay], *, columns: int = 2) -> Figure:
    """Several reliability diagrams in one picture, on the same axes, so that they can be compared.

    The figure is not registered with `matplotlib.pyplot`: show it as the value of a notebook's cell, or save it with
    ``figure.savefig(path)``.

    Args:
        displays: the diagrams, row by row.
        columns: how many stand side by side.

    Example:
        >>> import torch
        >>> probs, targets = torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0])
        >>> sharp = ReliabilityDisplay.from_predictions(probs, targets, name="as it is")
        >>> flat = ReliabilityDisplay.from_predictions(probs.sqrt().softmax(-1), targets, name="flattened")
        >>> len(reliability_grid([sharp, flat]).axes)
        2
    """
    if not displays:
        raise InvalidArgumentError("Expected at least one display, but got none.")
    if isinstance(columns, bool) or not isinstance(columns, int) or columns < 1:
        raise InvalidArgumentError(f"Expected `columns` to be a positive integer, but got {columns!r}.")
    columns = min(columns, len(displays))
    rows = math.ceil(len(displays) / columns)
    figure, places = _layout(rows, columns)
    highest = _highest_share(displays)
    for index, (display, place) in enumerate(zip(displays, places, strict=False)):
        display._draw(figure.add_axes(place), highest)
        panels = (display.ax_, display.histogram_ax_)
        if index % columns:
            for panel in panels:
                panel.set_ylabel("")
                panel.tick_params(labelleft=False)
        if index + columns < len(displays):
            display.histogram_ax_.set_xlabel("")
            display.histogram_ax_.tick_params(labelbottom=False)
    figure.align_ylabels()
    handles, labels = _legend(displays)
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), fontsize="small", frameon=False)
    return figure


def _legend(displays: Sequence[ReliabilityDisplay]) -> tuple[list[Artist], list[str]]:
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


def _highest_share(displays: Sequence[ReliabilityDisplay]) -> float:
    return max(float(display.bins.count.max()) / display.bins.n for display in displays)


def _layout(rows: int, columns: int) -> tuple[Figure, list[tuple[float, float, float, float]]]:
    """A figure and the place of each diagram in it, row by row; sizes are fixed in inches, so that text always fits."""
    from matplotlib.figure import Figure

    side, gap = 3.0, 0.4
    left, right, top, bottom = 0.72, 0.15, 0.5, 0.95  # bottom: labels and legend
    strip = _STRIP * side
    width = left + columns * side + (columns - 1) * gap + right
    height = rows * (top + side + strip) + (rows - 1) * gap + bottom
    corners = [
        (left + column * (side + gap), bottom + strip + (rows - 1 - row) * (side + strip + gap + top))
        for row in range(rows)
        for column in range(columns)
    ]
    figure = Figure(figsize=(width, height))
    return figure, [(x / width, y / height, side / width, side / height) for x, y in corners]


def _side_in_inches(ax: Axes) -> float:
    return float(min(ax.bbox.width, ax.bbox.height) / ax.figure.dpi)


def _make_room_below(ax: Axes) -> None:
    """Shrink axes that no layout engine cares for, so that the histogram stays inside the place they had."""
    box = ax.get_position()
    height = box.height / (1 + _STRIP)
    ax.set_position((box.x0, box.y1 - height, box.width, height))
    ax.set_in_layout(True)
