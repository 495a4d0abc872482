r"""A metric over the weight $\lambda$ of the calibration term, as in Fig. 2 of the paper."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np

from calibayes.checks import is_real
from calibayes.displays.style import BLUE, LINES, ORANGE, Line, add_legend, axes_or_new, finish, is_small
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import METRICS
from calibayes.objective import SCHEMES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["SweepDisplay", "SweepPoint"]

AxisScale = Literal["auto", "log", "symlog", "linear"]
Values: TypeAlias = Mapping[str, Mapping[Any, Sequence[float]] | Sequence[float]]
r"""Each scheme's values over seeds: by $\lambda$, or for a scheme without $\lambda$ just these."""

# One colour for the schemes with one weight vector, one for those with a distribution, of different lightness.
_DASHED = (0, (5, 2))
_STYLES = {
    "ca-fnn": Line(ORANGE, "-", "s"),
    "ca-bnn": Line(BLUE, "-", "o"),
    "fnn": Line(ORANGE, _DASHED, ""),
    "bnn": Line(BLUE, _DASHED, ""),
}


class SweepPoint(NamedTuple):
    r"""One scheme at one $\lambda$: the median over seeds, and the central part of their values."""

    lam: float
    median: float
    low: float
    high: float


class SweepDisplay:
    r"""A metric as a function of $\lambda$, the weight of the calibration term, for each scheme.

    Lines are medians over seeds and shaded areas hold the central 60 % of the values, as in Fig. 2 of the paper. A scheme
    that has no $\lambda$, or was run at $\lambda = 0$ only (FNN and BNN), is a dashed horizontal line.

    Args:
        values: ``{scheme: {lam: [one value per seed]}}``; for a scheme without $\lambda$, ``{scheme: [values]}``.
        metric: a name in `calibayes.metrics.METRICS`, or any other title for the vertical axis.
        interval: the share of the values that the shaded areas hold, above 0 and at most 1.

    Attributes:
        ax_: the axes, once drawn.
        figure_: the figure that holds them, once drawn.

    Examples:
        >>> values = {"fnn": [0.10, 0.11, 0.12], "ca-fnn": {0.0: [0.10, 0.12, 0.11], 10.0: [0.06, 0.04, 0.05]}}
        >>> display = SweepDisplay(values, metric="ece", interval=1.0)
        >>> display.curves["ca-fnn"][1]
        SweepPoint(lam=10.0, median=0.05, low=0.04, high=0.06)
        >>> list(display.references)
        ['fnn']
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, values: Values, *, metric: str = "ece", interval: float = 0.6) -> None:
        if not is_real(interval) or not 0 < interval <= 1:
            raise InvalidArgumentError(f"Expected `interval` to be above 0 and at most 1, but got {interval!r}.")
        if not values:
            raise InvalidArgumentError("Expected `values` to hold at least one scheme, but got none.")
        self.metric = metric
        self.interval = float(interval)
        self.curves: dict[str, list[SweepPoint]] = {}
        self.references: dict[str, SweepPoint] = {}
        for scheme, by_lam in values.items():
            points = [self._point(scheme, lam, each) for lam, each in _by_lam(scheme, by_lam)]
            if len(points) == 1 and points[0].lam == 0:
                self.references[scheme] = points[0]
            else:
                self.curves[scheme] = points

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, *, metric: str = "ece", scheme: str = "scheme", lam: str = "lam", interval: float = 0.6
    ) -> Self:
        r"""Take the values from a data frame with one row per run.

        Args:
            frame: one row per scheme, $\lambda$ and seed.
            metric: the column of the metric.
            scheme: the column of the scheme.
            lam: the column of $\lambda$; missing values for a scheme that has none.
            interval: the share of the values that the shaded areas hold.

        Examples:
            >>> import pandas as pd
            >>> frame = pd.DataFrame({"scheme": ["bnn", "ca-bnn", "ca-bnn"], "lam": [None, 1, 10], "ece": [0.08, 0.05, 0.03]})
            >>> [point.median for point in SweepDisplay.from_frame(frame).curves["ca-bnn"]]
            [0.05, 0.03]
        """
        for column in (metric, scheme, lam):
            if column not in frame.columns:
                raise InvalidArgumentError(f"The data frame has no column {column!r}: it has {list(frame.columns)}.")
        values: dict[str, dict[float | None, list[float]]] = {}
        for name, weight, value in zip(frame[scheme], frame[lam].astype(float), frame[metric].astype(float), strict=True):
            # NaN is not equal to itself, so it cannot be a key that several seeds share.
            values.setdefault(str(name), {}).setdefault(None if math.isnan(weight) else weight, []).append(value)
        return cls(values, metric=metric, interval=interval)

    def _point(self, scheme: str, lam: float, values: Sequence[float]) -> SweepPoint:
        array = np.asarray(values, dtype=np.float64).ravel()
        where = f"{scheme!r} at λ = {lam:g}"
        if not array.size:
            raise InvalidArgumentError(f"Expected at least one value of {self.metric!r} for {where}, but got none.")
        if not np.isfinite(array).all():
            wrong = array[~np.isfinite(array)][0]
            raise InvalidArgumentError(
                f"Expected finite values of {self.metric!r}, but {where} has {wrong}. "
                "Leave that run out, or show another metric."
            )
        low, median, high = np.quantile(array, [0.5 - self.interval / 2, 0.5, 0.5 + self.interval / 2]).tolist()
        return SweepPoint(lam, median, low, high)

    def plot(self, ax: Axes | None = None, *, xscale: AxisScale = "auto", legend: bool = True) -> Self:
        r"""Draw the curves, and return the display, with ``ax_`` and ``figure_``.

        Args:
            ax: the axes to draw into; a new `matplotlib.pyplot` figure by default, which notebooks show.
            xscale: the axis of $\lambda$; ``"auto"`` is logarithmic, with a linear piece down to 0 where 0 occurs.
            legend: name the schemes.
        """
        if xscale not in get_args(AxisScale):
            raise InvalidArgumentError(f"Expected `xscale` to be one of {get_args(AxisScale)}, but got {xscale!r}.")
        ax = axes_or_new(ax, 4.6, 3.4)
        self.ax_, self.figure_ = ax, ax.figure
        spare = itertools.cycle(LINES[2:])
        for scheme, points in self.curves.items():
            line = _STYLES.get(scheme.lower()) or next(spare)
            lam, median, low, high = (list(column) for column in zip(*points, strict=True))
            ax.fill_between(lam, low, high, facecolor=line.color, alpha=0.25, linewidth=0, zorder=1.5)
            ax.plot(lam, median, label=_title(scheme), zorder=3, **line.on(ax, markers=True))
        for scheme, point in self.references.items():
            line = _STYLES.get(scheme.lower()) or next(spare)._replace(linestyle=_DASHED)
            ax.axhspan(point.low, point.high, facecolor=line.color, alpha=0.12, linewidth=0, zorder=1)
            ax.axhline(point.median, label=_title(scheme), zorder=2, **line.on(ax))
        _scale(ax, sorted({point.lam for points in self.curves.values() for point in points}), xscale)
        ax.set(xlabel="λ", ylabel=_label(self.metric))
        finish(ax)
        if legend:
            add_legend(ax, *ax.get_legend_handles_labels(), above=True)
        return self


def _by_lam(scheme: str, values: Mapping[Any, Sequence[float]] | Sequence[float]) -> list[tuple[float, Sequence[float]]]:
    """Pairs of λ and values, in the order of λ; 0 stands for a scheme that has none."""
    if not isinstance(values, Mapping):
        return [(0.0, values)]
    if list(values) == [None]:
        return [(0.0, values[None])]
    for lam in values:
        if not is_real(lam) or not 0 <= lam < math.inf:
            raise InvalidArgumentError(
                f"Expected every λ of {scheme!r} to be a finite number of at least 0, but got {lam!r}. "
                "Give the values of a scheme without λ as a list."
            )
    return sorted(((float(lam), each) for lam, each in values.items()), key=lambda pair: pair[0])


def _scale(ax: Axes, lams: Sequence[float], scale: AxisScale) -> None:
    """Scale the axis of λ: every λ has a small tick, and as many as there is room for are labelled."""
    if not lams:
        ax.set_xticks([])
        return
    positive = [lam for lam in lams if lam > 0]
    if scale == "auto":
        scale = "symlog" if len(positive) < len(lams) else "log"
    if scale == "log" and len(positive) < len(lams):
        raise InvalidArgumentError('λ = 0 has no place on a logarithmic axis: pass xscale="symlog" or "auto".')
    ax.set_xscale(scale, **({"linthresh": min(positive, default=1.0)} if scale == "symlog" else {}))
    to_axis = ax.xaxis.get_transform()
    first, last = to_axis.transform([lams[0], lams[-1]])
    space = 0.05 * (last - first) or 0.5
    ax.set_xlim(*to_axis.inverted().transform([first - space, last + space]))
    labelled = lams
    if not _fits(ax, lams) and positive:
        first, last = (round_(math.log10(lam)) for round_, lam in ((math.ceil, positive[0]), (math.floor, positive[-1])))
        powers = [lam for lam in lams if lam == 0] + [10.0**k for k in range(first, last + 1)]
        labelled = powers if len(powers) > 1 and _fits(ax, powers) else [lams[0], lams[-1]]
    ax.set_xticks(labelled, [f"{lam:g}" for lam in labelled])
    ax.set_xticks(lams, minor=True)
    ax.tick_params(axis="x", which="minor", labelbottom=False)


def _fits(ax: Axes, ticks: Sequence[float]) -> bool:
    """Return True if the labels of these ticks do not overlap."""
    places = ax.transData.transform([(tick, 0) for tick in ticks])[:, 0] / ax.figure.dpi
    widths = np.array([len(f"{tick:g}") for tick in ticks]) * (0.06 if is_small(ax) else 0.09)
    return bool((np.diff(places) >= (widths[:-1] + widths[1:]) / 2 + 0.1).all())


def _title(scheme: str) -> str:
    return scheme.upper() if scheme.lower() in SCHEMES else scheme


def _label(metric: str) -> str:
    for info in METRICS:
        if info.name == metric:
            return info.title if info.better is None else f"{info.title} ({info.better} is better)"
    return metric
