"""The histogram of confidence, split into right and wrong decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from torch import Tensor

from calibayes.displays.estimator_predictions import Classifier, predictions_of
from calibayes.displays.style import BLUE, INK, VERMILLION, add_legend, add_title, axes_or_new, finish, percent_axis
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import Array, ReliabilityBins, reliability_bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["ConfidenceHistogramDisplay"]

HistogramKind = Literal["stacked", "mirrored"]

_RIGHT: dict[str, Any] = {"facecolor": BLUE, "edgecolor": "white", "linewidth": 0.6}
_WRONG: dict[str, Any] = {"facecolor": "#F4B183", "edgecolor": VERMILLION, "linewidth": 0.6, "hatch": "////"}
_GAP: dict[str, Any] = {"facecolor": INK, "alpha": 0.15, "linewidth": 0}
_ACCURACY: dict[str, Any] = {"color": INK, "linestyle": "-", "linewidth": 1.2}
_CONFIDENCE: dict[str, Any] = {"color": INK, "linestyle": (0, (3, 2)), "linewidth": 1.2}


class ConfidenceHistogramDisplay:
    """The histogram of confidence, split into right and wrong decisions.

    A bar shows the share of examples whose confidence lies in its bin, split into right and wrong decisions. Two lines
    mark the mean confidence and the accuracy; the shaded part between them is how overconfident or underconfident the
    classifier is overall. Wrong decisions far to the right do the most harm.

    Args:
        bins: the result of `reliability_bins`.
        name: a title, such as the name of the classifier.

    Attributes:
        ax_: the axes, once drawn.
        figure_: the figure that holds them, once drawn.

    Examples:
        >>> import torch
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
        >>> display = ConfidenceHistogramDisplay.from_predictions(probs, torch.tensor([0, 1, 1, 1]), bins=5)
        >>> display.right.tolist(), display.wrong.tolist()
        ([0.0, 0.0, 0.25, 0.25, 0.25], [0.0, 0.0, 0.0, 0.25, 0.0])
        >>> display.accuracy, round(display.confidence, 2)
        (0.75, 0.75)
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *, bins: ReliabilityBins, name: str | None = None) -> None:
        self.bins = bins
        self.name = name

    @classmethod
    def from_predictions(
        cls, probs: Array, targets: Array, *, bins: int = 20, weights: Array | None = None, name: str | None = None
    ) -> Self:
        """Compute the histogram of a classifier's probabilities; `plot` draws it.

        Arguments as `calibayes.metrics.ece`; ``name`` is a title, such as the name of the classifier.
        """
        return cls(bins=reliability_bins(probs, targets, bins, weights=weights), name=name)

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: Any,  # noqa: N803
        y: Any,
        *,
        bins: int = 20,
        weights: Array | None = None,
        name: str | None = None,
    ) -> Self:
        """Compute the histogram of a fitted classifier; `plot` draws it. Other arguments as `from_predictions`.

        Args:
            estimator: any fitted classifier with ``predict_proba`` and ``classes_``.
            X: its inputs.
            y: their true labels, as listed in ``classes_``.
            name: a title; the classifier's class by default.
        """
        probs, targets = predictions_of(estimator, X, y)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(probs, targets, bins=bins, weights=weights, name=name)

    @property
    def right(self) -> Tensor:
        """The share of all examples that is in each bin and classified correctly."""
        return self.bins.share * self.bins.accuracy.nan_to_num()

    @property
    def wrong(self) -> Tensor:
        """The share of all examples that is in each bin and classified wrongly."""
        return self.bins.share * (1 - self.bins.accuracy.nan_to_num())

    @property
    def accuracy(self) -> float:
        """The share of examples that is classified correctly."""
        return float(self.right.sum())

    @property
    def confidence(self) -> float:
        """The mean confidence."""
        return float((self.bins.share * self.bins.confidence.nan_to_num()).sum())

    def plot(self, ax: Axes | None = None, *, kind: HistogramKind = "stacked", legend: bool = True) -> Self:
        """Draw the histogram, and return the display, with ``ax_`` and ``figure_``.

        Args:
            ax: the axes to draw into; a new `matplotlib.pyplot` figure by default, which notebooks show.
            kind: ``"stacked"`` puts right on top of wrong decisions; ``"mirrored"`` draws the wrong ones downwards.
            legend: explain the colours and lines.
        """
        if kind not in get_args(HistogramKind):
            raise InvalidArgumentError(f"Expected `kind` to be one of {get_args(HistogramKind)}, but got {kind!r}.")
        ax = axes_or_new(ax, 4.6, 3.4)
        self.ax_, self.figure_ = ax, ax.figure
        handles = [*self._draw_bars(ax, mirrored=kind == "mirrored"), *self._draw_means(ax)]
        ax.set(xlim=(0, 1), xlabel="confidence", ylabel="share of examples")
        percent_axis(ax.yaxis)
        add_title(ax, self.name)
        finish(ax)
        if legend:
            add_legend(ax, handles, [str(handle.get_label()) for handle in handles])
        return self

    def _draw_bars(self, ax: Axes, *, mirrored: bool) -> list[Any]:
        filled = self.bins.weight > 0
        left, width = self.bins.edges[:-1][filled].tolist(), 1 / len(filled)
        right, wrong = self.right[filled].tolist(), self.wrong[filled].tolist()
        base = 0 if mirrored else wrong
        below = [-share for share in wrong] if mirrored else wrong
        if mirrored:
            ax.axhline(0, color=INK, linewidth=0.8, label="_zero", zorder=3)
        return [
            ax.bar(left, right, width, base, align="edge", label="right", zorder=2, **_RIGHT),
            ax.bar(left, below, width, align="edge", label="wrong", zorder=2, **_WRONG),
        ]

    def _draw_means(self, ax: Axes) -> list[Any]:
        from matplotlib.patheffects import withStroke

        halo = [withStroke(linewidth=2.8, foreground="white")]  # to be seen in front of the bars
        gap = self.confidence - self.accuracy
        label = f"overconfident by {gap:.3f}" if gap >= 0 else f"underconfident by {-gap:.3f}"
        return [
            ax.axvline(self.accuracy, label=f"accuracy {self.accuracy:.3f}", zorder=4, path_effects=halo, **_ACCURACY),
            ax.axvline(self.confidence, label=f"confidence {self.confidence:.3f}", zorder=4, path_effects=halo, **_CONFIDENCE),
            ax.axvspan(*sorted((self.accuracy, self.confidence)), label=label, zorder=1, **_GAP),
        ]
