"""The reliability diagram: confidence against accuracy, bin by bin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from torch import Tensor

from calibayes.displays.estimator_predictions import Classifier, predictions_of
from calibayes.displays.style import (
    BLUE,
    GREY,
    INK,
    VERMILLION,
    add_legend,
    add_title,
    axes_or_new,
    finish,
    is_small,
    percent_axis,
    side_in_inches,
)
from calibayes.metrics import Array, ReliabilityBins, Scores, evaluate, reliability_bins
from calibayes.metrics.agreement import beyond_chance
from calibayes.metrics.bins import DEFAULT_BINS

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["LINE", "STRIP", "ReliabilityDisplay", "highest_share", "legend_entries"]

STRIP = 0.26  # how far below the diagram the histogram ends, as a share of the diagram's side
LINE = 1.25  # the height of a line of scores, and
_LETTER = 0.54  # the mean width of a letter in it, beside the size of the text

_ACCURACY: dict[str, Any] = {"facecolor": "#D3E3EF", "edgecolor": "white", "linewidth": 0.6}
_DIAGONAL: dict[str, Any] = {"color": INK, "linestyle": (0, (4, 3)), "linewidth": 1}
# A gap that chance explains is pale: colour is for what the data show.
_OVERCONFIDENT: dict[str, Any] = {"facecolor": VERMILLION, "edgecolor": "white", "linewidth": 0.6}
_UNDERCONFIDENT: dict[str, Any] = {"facecolor": BLUE, "edgecolor": "white", "linewidth": 0.6}
_BY_CHANCE: dict[str, Any] = {"facecolor": "none", "edgecolor": "#B8C4CE", "linewidth": 0.6}
_BAND: dict[str, Any] = {"facecolor": GREY, "linewidth": 0}
_BAND_EDGE: dict[str, Any] = {"color": GREY, "linewidth": 1.0}
_WHISKER = 0.08  # the width of the band, as a share of the bin's


class ReliabilityDisplay:
    """A reliability diagram: in each bin of confidence, how often the classifier is right.

    A bar shows the accuracy of the examples in its bin. Bars on the diagonal mean that the confidence can be taken at its word.
    The grey whiskers are where the bars would end if the confidence were right: all of them together, 95 times out of 100. They
    are long where there are few examples. If a bar ends beyond its whisker, and the test of calibration rejects as well
    (``scores.kce_p_value``), the gap to the mean confidence is coloured: above the bar where the classifier is overconfident,
    at its top where it is underconfident. The strip below shows what share of the examples lies in each bin, and the line
    above the scores, because the calibration error alone does not tell a good classifier from a useless one.

    Args:
        bins: what `reliability_bins` found.
        scores: what `evaluate` found on the same predictions; the ECE is shown with its interval where they have one.
        name: a title, such as the name of the classifier.
        level: how often all bars end within their whiskers if the confidence is right.

    Attributes:
        ax_: the axes of the diagram, once drawn.
        histogram_ax_: the axes of the strip below it, once drawn.
        figure_: the figure that holds them, once drawn.

    Examples:
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

    def __init__(self, *, bins: ReliabilityBins, scores: Scores, name: str | None = None, level: float = 0.95) -> None:
        self.bins = bins
        self.scores = scores
        self.name = name
        self.level = level

    @classmethod
    def from_predictions(
        cls,
        probs: Array,
        targets: Array,
        *,
        bins: int = DEFAULT_BINS,
        weights: Array | None = None,
        name: str | None = None,
        intervals: bool = True,
        level: float = 0.95,
    ) -> Self:
        """Compute the diagram of a classifier's probabilities; `plot` draws it.

        Args:
            probs: class probabilities, shape ``[n, K]``, torch or numpy; ``[n]`` for the second of two classes.
            targets: the true classes, integers of shape ``[n]``.
            bins: the number of bins, of equal width.
            weights: how much each example counts, shape ``[n]``; all the same by default.
            name: a title, such as the name of the classifier.
            intervals: compute the intervals of the scores too, which takes about a second.
            level: the probability of the intervals and of the band.
        """
        scores = evaluate(probs, targets, bins, weights=weights, intervals=intervals, level=level)
        found = reliability_bins(probs, targets, bins, weights=weights, check=False)
        return cls(bins=found, scores=scores, name=name, level=level)

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: Any,  # noqa: N803
        y: Any,
        *,
        bins: int = DEFAULT_BINS,
        weights: Array | None = None,
        name: str | None = None,
        intervals: bool = True,
        level: float = 0.95,
    ) -> Self:
        """Compute the diagram of a fitted classifier on examples ``X`` with true labels ``y``; `plot` draws it.

        Args:
            estimator: any fitted classifier with ``predict_proba`` and ``classes_``.
            X: inputs, as the classifier takes them.
            y: their true labels, as listed in ``classes_``.
            bins: the number of bins, of equal width.
            weights: how much each example counts, shape ``[n]``; all the same by default.
            name: a title; the classifier's class by default.
            intervals: compute the intervals of the scores too, which takes about a second.
            level: the probability of the intervals and of the band.
        """
        probs, targets = predictions_of(estimator, X, y)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(probs, targets, bins=bins, weights=weights, name=name, intervals=intervals, level=level)

    def plot(self, ax: Axes | None = None, *, legend: bool = True, bands: bool = True) -> Self:
        """Draw the diagram.

        Args:
            ax: the axes to draw into, best of a figure with ``layout="constrained"``; without them, a new figure of
                `matplotlib.pyplot`, which notebooks show.
            legend: write what the colours mean.
            bands: draw the band in which the bars would end if the confidence were right.

        Returns:
            The display itself, with ``ax_``, ``histogram_ax_`` and ``figure_``.
        """
        ax = axes_or_new(ax, 4.2, 5.6)
        if ax.figure.get_layout_engine() is None:
            _make_room_below(ax)
        self._draw(ax, highest_share([self]), bands=bands)
        if legend:
            add_legend(ax, *legend_entries([self], bands=bands))
        return self

    def _draw(self, ax: Axes, highest: float, *, bands: bool) -> None:
        self.ax_, self.figure_ = ax, ax.figure
        ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy")
        ax.set_box_aspect(1)
        ax.tick_params(labelbottom=False)
        ax.plot([0, 1], [0, 1], zorder=7, label="_diagonal", **_DIAGONAL)
        self._draw_bars(ax)
        if bands:
            self._draw_bands(ax)
        self._draw_histogram(ax, highest)
        size = 6.5 if is_small(ax) else 8.0
        lines = self.score_lines(side_in_inches(ax), size)
        ax.text(0, 1.02, "\n".join(lines), transform=ax.transAxes, fontsize=size, color=INK, va="bottom")
        add_title(ax, self.name, pad=8 + LINE * size * len(lines))
        finish(ax, self.histogram_ax_)

    def _draw_bars(self, ax: Axes) -> None:
        width = 1 / len(self.bins.count)
        for left, confidence, accuracy, off in self._filled(self.bins.confidence, self.bins.accuracy, self._beyond_chance()):
            ax.bar(left, accuracy, width, align="edge", label="_accuracy", zorder=2, **_ACCURACY)
            ax.hlines(accuracy, left, left + width, color=BLUE, linewidth=1.6, label="_level", zorder=4)
            gap = confidence - accuracy
            if gap == 0:
                continue
            style = _BY_CHANCE if not off else _OVERCONFIDENT if gap > 0 else _UNDERCONFIDENT
            ax.bar(left, abs(gap), width, min(accuracy, confidence), align="edge", label="_gap", zorder=3, **style)

    def _draw_bands(self, ax: Axes) -> None:
        width = 1 / len(self.bins.count)
        for left, low, high in self._filled(*self.bins.consistency_band(self.level)):
            middle = left + width / 2
            ax.bar(middle, high - low, _WHISKER * width, low, label="_band", zorder=5, **_BAND)
            ax.hlines((low, high), middle - width / 5, middle + width / 5, label="_band edge", zorder=6, **_BAND_EDGE)

    def _beyond_chance(self) -> Tensor:
        return beyond_chance(self.bins, self.scores.kce_p_value, self.level)

    def _filled(self, *columns: Tensor) -> list[tuple[float, ...]]:
        """The left edge and those columns of each bin that is not empty."""
        filled = self.bins.weight > 0
        return list(zip(*(column[filled].tolist() for column in (self.bins.edges[:-1], *columns)), strict=True))

    def _draw_histogram(self, ax: Axes, highest: float) -> None:
        from matplotlib.ticker import MaxNLocator
        from matplotlib.transforms import ScaledTranslation, blended_transform_factory

        # Of a fixed height, since a layout engine cannot make room for what grows with the room that it makes.
        inches = ax.figure.dpi_scale_trans + ScaledTranslation(0, 0, ax.transAxes)  # type: ignore[arg-type]
        side = side_in_inches(ax)
        place = (0.0, -STRIP * side, 1.0, (STRIP - 0.06) * side)
        strip = ax.inset_axes(place, transform=blended_transform_factory(ax.transAxes, inches), sharex=ax)
        share = self.bins.share.tolist()
        width = 1 / len(share)
        strip.bar(self.bins.edges[:-1].tolist(), share, width, align="edge", color=GREY)
        strip.set(ylim=(0, 1.08 * highest), xlabel="confidence", ylabel="share")
        strip.yaxis.set_major_locator(MaxNLocator(2))
        percent_axis(strip.yaxis)
        strip.tick_params(labelbottom=True)
        self.histogram_ax_ = strip

    def score_lines(self, inches: float, size: float = 8.0) -> list[str]:
        """The scores in text of that size, in as many lines as they need in that width."""
        scores = self.scores
        nll = "∞" if math.isinf(scores.nll) else f"{scores.nll:.3f}"
        ece = f"ECE {scores.ece:.3f}"
        if "ece" in scores.intervals:
            low, high = scores.intervals["ece"]
            ece += f" ({low:.3f}–{high:.3f})"
        lines: list[str] = []
        for word in (f"accuracy {scores.accuracy:.3f}", f"NLL {nll}", f"Brier {scores.brier:.3f}", ece):
            longer = f"{lines[-1]}  {word}" if lines else word
            if lines and len(longer) * _LETTER * size <= 72 * inches:
                lines[-1] = longer
            else:
                lines.append(word)
        return lines


def legend_entries(displays: Sequence[ReliabilityDisplay], *, bands: bool) -> tuple[list[Artist], list[str]]:
    """Handles and labels of what is to be seen in the diagrams, and no more."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: dict[str, Artist] = {"accuracy": Patch(**_ACCURACY)}
    gaps = [gap for display in displays for gap in display.bins.gap[display._beyond_chance()].tolist()]
    present = {"overconfident": any(gap > 0 for gap in gaps), "underconfident": any(gap < 0 for gap in gaps)}
    entries |= {
        name: Patch(**style)
        for name, style in (("overconfident", _OVERCONFIDENT), ("underconfident", _UNDERCONFIDENT))
        if present[name]
    }
    entries["calibrated"] = Line2D([], [], **_DIAGONAL)
    if bands:
        levels = " / ".join(f"{level:.3g}" for level in sorted({100 * display.level for display in displays}))
        entries[f"chance, all bars ({levels} %)"] = Line2D([], [], linestyle="none", marker="|", markersize=9, color=GREY)
    return list(entries.values()), list(entries)


def highest_share(displays: Sequence[ReliabilityDisplay]) -> float:
    """The largest share of examples in any bin: how high their histograms must reach."""
    return max(float(display.bins.share.max()) for display in displays)


def _make_room_below(ax: Axes) -> None:
    """Shrink axes that no layout engine cares for, so that the histogram stays inside the place they had."""
    box = ax.get_position()
    height = box.height / (1 + STRIP)
    ax.set_position((box.x0, box.y1 - height, box.width, height))
    ax.set_in_layout(True)
