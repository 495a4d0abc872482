"""The risk-coverage curve: the errors that are left when the classifier abstains on low confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch

from calibayes.displays.estimator_predictions import Classifier, predictions_of
from calibayes.displays.style import INK, LINES, Line, add_legend, axes_or_new, finish, is_small, percent_axis, spread
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import Array, RiskCoverage, risk_coverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["RiskCoverageDisplay"]

# By these ids the next model's plot finds the artists.
_CURVE, _TARGET, _ERROR = "risk-coverage", "target-accuracy", "full-coverage-error"
_MOST_POINTS = 1000
_STEADY = 0.05  # below this coverage a few examples make up the error rate, and it may jump to 0 or 1


class RiskCoverageDisplay:
    """The risk-coverage curve: the error rate when the classifier abstains on its least confident predictions.

    To the right it answers everything, and the dot is its error rate. To the left it answers only the examples that it is
    most confident of: if confidence tells right from wrong, the curve falls. AURC, the area under the curve, is its mean
    height; lower is better. Draw several models into the same axes to compare them.

    Args:
        curve: the result of `calibayes.metrics.risk_coverage`.
        name: the name of the classifier, for the legend.
        target_accuracy: an accuracy to reach, above 0 and below 1; the coverage that reaches it is marked.

    Attributes:
        ax_: the axes, once drawn.
        figure_: the figure that holds them, once drawn.

    Examples:
        >>> import torch
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.45, 0.55]])
        >>> display = RiskCoverageDisplay.from_predictions(probs, torch.tensor([0, 0, 1, 0]), target_accuracy=0.9)
        >>> display.error, display.coverage
        (0.25, 0.75)
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *, curve: RiskCoverage, name: str | None = None, target_accuracy: float | None = None) -> None:
        if target_accuracy is not None and not 0 < target_accuracy < 1:
            raise InvalidArgumentError(f"Expected `target_accuracy` to be above 0 and below 1, but got {target_accuracy!r}.")
        self.curve = curve
        self.name = name
        self.target_accuracy = target_accuracy

    @classmethod
    def from_predictions(
        cls,
        probs: Array,
        targets: Array,
        *,
        weights: Array | None = None,
        name: str | None = None,
        target_accuracy: float | None = None,
    ) -> Self:
        """Compute the curve of a classifier's probabilities; `plot` draws it.

        Arguments as `calibayes.metrics.accuracy`, and ``name`` and ``target_accuracy`` as the class itself.
        """
        return cls(curve=risk_coverage(probs, targets, weights=weights), name=name, target_accuracy=target_accuracy)

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: Any,  # noqa: N803
        y: Any,
        *,
        weights: Array | None = None,
        name: str | None = None,
        target_accuracy: float | None = None,
    ) -> Self:
        """Compute the curve of a fitted classifier; `plot` draws it. Other arguments as `from_predictions`.

        Args:
            estimator: any fitted classifier with ``predict_proba`` and ``classes_``.
            X: its inputs.
            y: their true labels, as listed in ``classes_``.
            name: the name in the legend; the classifier's class by default.
        """
        probs, targets = predictions_of(estimator, X, y)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(probs, targets, weights=weights, name=name, target_accuracy=target_accuracy)

    @property
    def error(self) -> float:
        """The error rate when every example is answered."""
        return float(self.curve.risk[-1])

    @property
    def coverage(self) -> float | None:
        """The largest share of examples that can be answered with the target accuracy; ``None`` without a target."""
        return None if self.target_accuracy is None else float(self.curve.coverage_at(self.target_accuracy))

    def plot(self, ax: Axes | None = None, *, name: str | None = None, legend: bool = True) -> Self:
        """Draw the curve, beside any that are in the axes already, and return the display, with ``ax_`` and ``figure_``.

        Args:
            ax: the axes to draw into; a new `matplotlib.pyplot` figure by default, which notebooks show.
            name: the name in the legend, instead of the display's own.
            legend: name the curves and write their AURC.
        """
        ax = axes_or_new(ax, 4.6, 3.4)
        self.ax_, self.figure_ = ax, ax.figure
        before = [line for line in ax.lines if line.get_gid() == _CURVE]
        style = LINES[len(before) % len(LINES)]
        coverage, risk = self._points()
        steady = [each for share, each in zip(coverage, risk, strict=True) if share >= _STEADY]
        top = max(1.1 * max(steady), 0.01, ax.get_ylim()[1] if before else 0.0)
        ax.set(xlim=(0, 1), ylim=(0, top), xlabel="coverage", ylabel="error rate")
        ax.plot(coverage, risk, gid=_CURVE, label=self._label(name, short=is_small(ax)), zorder=3, **style.on(ax))
        if self.target_accuracy is not None:
            self._draw_target(ax, style.color, self.target_accuracy)
        self._mark_error(ax, style)
        percent_axis(ax.xaxis)
        percent_axis(ax.yaxis)
        finish(ax)
        if legend:
            handles, labels = ax.get_legend_handles_labels()
            # The targets are lines too, but they belong below the models.
            entries = sorted(zip(handles, labels, strict=True), key=lambda entry: entry[0].get_gid() == _TARGET)
            small, title = is_small(ax), "AURC" if self.coverage is None else "AURC, answers"
            add_legend(ax, *zip(*entries, strict=True), above=small, title=title if small else "")
        return self

    def _points(self) -> tuple[list[float], list[float]]:
        """At most a thousand points of the curve, evenly chosen, with the last one: more cannot be seen."""
        last = len(self.curve.coverage) - 1
        chosen = torch.linspace(0, last, min(last + 1, _MOST_POINTS), dtype=torch.float64).round().long()
        return self.curve.coverage[chosen].tolist(), self.curve.risk[chosen].tolist()

    def _label(self, name: str | None, *, short: bool) -> str:
        """The curve's name and numbers; where there is little room, the legend's title explains the numbers."""
        name = self.name if name is None else name
        numbers = [f"{self.curve.aurc:.3f}" if short else f"AURC {self.curve.aurc:.3f}"]
        if self.coverage is not None:
            numbers.append(f"{self.coverage:.1%}" if short else f"answers {self.coverage:.1%}")
        return ", ".join(numbers) if name is None else f"{name}: {', '.join(numbers)}"

    def _draw_target(self, ax: Axes, color: str, accuracy: float) -> None:
        allowed, label, coverage = 1 - accuracy, f"accuracy {100 * accuracy:.4g}%", self.curve.coverage_at(accuracy)
        if label not in ax.get_legend_handles_labels()[1]:
            ax.axhline(allowed, color=INK, linestyle=(0, (1, 2)), linewidth=1, gid=_TARGET, label=label, zorder=2)
        if coverage > 0:
            ax.vlines(coverage, 0, allowed, color=color, linewidth=1, label="_coverage", zorder=2)

    def _mark_error(self, ax: Axes, style: Line) -> None:
        """Draw a point at full coverage and the error rate beside it, clear of those of earlier models."""
        size = 6.5 if is_small(ax) else 8.0
        ax.plot(1, self.error, style.marker, color=style.color, markersize=size / 2, clip_on=False, label="_error", zorder=4)
        ax.annotate(
            f"{self.error:.1%}", (1, self.error), (0, 0), textcoords="offset points", va="center", fontsize=size, gid=_ERROR
        )
        notes = sorted((text for text in ax.texts if text.get_gid() == _ERROR), key=lambda text: text.xy[1])  # type: ignore[attr-defined]
        # A legend above the axes will take up part of their height.
        points = 72 * (ax.bbox.height / ax.figure.dpi) / ax.get_ylim()[1] * (0.6 if is_small(ax) else 1.0)
        wanted = [points * text.xy[1] for text in notes]  # type: ignore[attr-defined]
        for text, at, place in zip(notes, wanted, spread(wanted, 1.2 * size), strict=True):
            text.set_position((size, place - at))
