"""The course of a training run, epoch by epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from calibayes.displays.style import BLUE, GREEN, INK, VERMILLION, Line, add_legend, axes_or_new, finish, is_small, stack_below
from calibayes.errors import InvalidArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from calibayes.training.history import History

__all__ = ["HistoryDisplay"]


class _Panel(NamedTuple):
    """One of the stacked axes: its title, and the curves in it, by their column in the history."""

    title: str
    curves: dict[str, tuple[str, Line]]


_LOSS = "loss"
_TRAINING, _VALIDATION = Line(VERMILLION, "-", "s"), Line(GREEN, "-", "D")

_SHOWN = {"cross_entropy": "cross-entropy", "calibration": "AECE", "kl": "KL"}
_TAKEN = (_LOSS, "aece", "ece", "accuracy")
_TERMS = ("cross_entropy", "calibration", "kl")
_TALL = 2.0  # height of the first panel, with several curves and a legend, beside the others
_POINTS = 40  # epochs up to which each is marked by a point


class HistoryDisplay:
    """The course of training: the terms of the loss and the validation metrics over epochs.

    Panels below each other share the axis of epochs: the total per example with the mean loss in it and, if there is one,
    the validation NLL; then every term of the objective (AECE and KL, say) on the training data, and ECE and accuracy on the
    validation data. A dotted line marks the epoch whose weights early stopping restored, or else the epoch with the lowest
    validation NLL.

    Args:
        epochs: one mapping per epoch, as in `History.epochs`.
        best_epoch: the epoch (from 1) whose weights were restored, if any.
        terms: the columns of the loss and its other terms, as in `History.terms`; those of the paper by default.

    Attributes:
        ax_: the axes of the first panel, with the loss, once drawn.
        axes_: the axes of all panels by name (``"loss"``, ``"aece"``, ``"kl"``, ``"ece"``, ``"accuracy"``, and the names of
            other terms), once drawn.
        figure_: the figure that holds them, once drawn.

    Examples:
        >>> rows = [{"epoch": 1, "total": 2.0, "val_nll": 1.5}, {"epoch": 2, "total": 1.0, "val_nll": 1.2}]
        >>> display = HistoryDisplay(epochs=rows)
        >>> display.panels, display.lowest_nll
        (('loss',), 2)
    """

    ax_: Axes
    axes_: dict[str, Axes]
    figure_: Figure | SubFigure

    def __init__(
        self, *, epochs: Sequence[Mapping[str, float]], best_epoch: int | None = None, terms: Sequence[str] = _TERMS
    ) -> None:
        self.epochs = epochs
        self.best_epoch = best_epoch
        self.terms = tuple(terms)

    @classmethod
    def from_history(cls, history: History) -> Self:
        """Take the history that `calibayes.fit` returned; `plot` draws it."""
        return cls(epochs=history.epochs, best_epoch=history.best_epoch, terms=history.terms or _TERMS)

    @property
    def panels(self) -> tuple[str, ...]:
        """The names of the panels that are not empty; a term that is always zero is not part of the loss."""
        return tuple(name for name, panel in self._panels().items() if name == _LOSS or any(map(self._shown, panel.curves)))

    def _panels(self) -> dict[str, _Panel]:
        """All panels by name; the terms differ by orders of magnitude: on one scale, some would be flat lines."""
        loss, *terms = self.terms
        panels = {
            _LOSS: _Panel(
                "loss",
                {
                    "total": ("total", Line(INK, "-", "o")),
                    loss: (_title_of(loss), Line(BLUE, (0, (4, 1.5)), "^")),
                    "val_nll": ("validation NLL", _VALIDATION._replace(linestyle=(0, (6, 1, 1, 1)))),
                },
            )
        }
        for name in terms:
            title = _title_of(name)
            key = "aece" if name == "calibration" else f"training {name}" if name in _TAKEN else name
            panels[key] = _Panel(f"training {title}", {name: (title, _TRAINING)})
        panels["ece"] = _Panel("validation ECE", {"val_ece": ("validation ECE", _VALIDATION)})
        panels["accuracy"] = _Panel("validation accuracy", {"val_accuracy": ("validation accuracy", _VALIDATION)})
        return panels

    @property
    def lowest_nll(self) -> int | None:
        """The epoch with the lowest validation NLL; ``None`` without validation data."""
        nll = {int(row["epoch"]): row["val_nll"] for row in self.epochs if math.isfinite(row.get("val_nll", math.nan))}
        return min(nll, key=nll.__getitem__, default=None)

    @property
    def _marked(self) -> int | None:
        return self.lowest_nll if self.best_epoch is None else self.best_epoch

    def _shown(self, column: str) -> bool:
        return any(row.get(column, 0.0) != 0.0 for row in self.epochs)

    def plot(self, ax: Axes | None = None, *, panels: Sequence[str] | None = None) -> Self:
        """Draw the panels, and return the display, with ``ax_``, ``axes_`` and ``figure_``.

        Args:
            ax: the axes to divide into panels, the first with the loss; a new `matplotlib.pyplot` figure by default.
            panels: those to draw below the loss, from ``display.panels``; all by default, none with ``[]``.
        """
        from matplotlib.ticker import MaxNLocator

        below = [name for name in (self.panels if panels is None else panels) if name != _LOSS]
        for name in below:
            if name not in self.panels:
                raise InvalidArgumentError(f"Expected `panels` to be among {self.panels}, but got {name!r}.")
        ax = axes_or_new(ax, 4.8, 2.4 + 1.1 * len(below))
        lower = stack_below(ax, [_TALL] + [1.0] * len(below))
        self.ax_, self.figure_ = ax, ax.figure
        self.axes_ = dict(zip([_LOSS, *below], [ax, *lower], strict=True))
        for name, panel in self.axes_.items():
            self._draw(panel, self._panels()[name])
        last = list(self.axes_.values())[-1]
        last.set_xlabel("epoch")
        last.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
        finish(*self.axes_.values())
        if self._marked is not None:
            what = "lowest NLL" if self.best_epoch is None else "weights kept"
            ax.set_title(f"⋮ {what}: epoch {self._marked}", loc="right", **_title(ax))
        if ax.get_legend_handles_labels()[0]:
            add_legend(ax, *ax.get_legend_handles_labels())
        return self

    def _draw(self, ax: Axes, panel: _Panel) -> None:
        for column, (label, line) in panel.curves.items():
            if self._shown(column):
                rows = [row for row in self.epochs if column in row]
                look = line.on(ax, markers=len(rows) <= _POINTS)
                ax.plot([row["epoch"] for row in rows], [row[column] for row in rows], label=label, **look)
        if self._marked is not None:
            ax.axvline(self._marked, color=INK, linestyle=(0, (1, 2)), linewidth=1.2, label="_best", zorder=1)
        ax.set_title(panel.title, loc="left", **_title(ax))


def _title_of(name: str) -> str:
    return _SHOWN.get(name, name.replace("_", " "))


def _title(ax: Axes) -> dict[str, Any]:
    return {"fontsize": "x-small" if is_small(ax) else "small", "pad": 3}
