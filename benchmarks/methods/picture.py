"""NLL against cost: which method is worth its price."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.methods.comparison_frame import label

__all__ = ["draw_costs"]

_COSTS = (1, 1.5, 2, 3, 4, 6, 8, 12, 16)
_SIMILAR = 1.2


def draw_costs(frame: pd.DataFrame, titles: dict[str, str], path: Path, *, way: str = "best") -> None:
    """Every method's test NLL over the cost of its training, a panel for each task, both bases in colours of their own."""
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    from calibayes.displays.style import BLUE, VERMILLION

    colours = {"plain": BLUE, "regularised": VERMILLION}
    figure, panels = plt.subplots(len(titles), figsize=(11.5, 5 * len(titles)), layout="constrained", squeeze=False)
    for axes, (task, title) in zip(panels[:, 0], titles.items(), strict=True):
        part = frame[(frame["task"] == task) & (frame["way"] == way) & (frame["cost"] > 0)]
        scores = part.groupby(["base", "method"], sort=False).agg(
            nll=("nll", "mean"), spread=("nll", "std"), cost=("cost", "mean")
        )
        gap = (scores["nll"].max() - scores["nll"].min()) / 30
        for column in _of_similar_cost(list(scores.itertuples())):
            _draw_column(axes, sorted(column, key=lambda row: float(row.nll)), gap, colours)
        axes.set_xscale("log")
        axes.set_xlim(scores["cost"].min() / 1.1, scores["cost"].max() * 1.7)
        axes.xaxis.set_major_locator(FixedLocator(_COSTS))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda cost, _: f"{cost:g}×"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("cost of training, in plain trainings")
        axes.set_ylabel("test NLL (lower is better)")
        axes.set_title(title, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    for base, colour in colours.items():
        panels[0, 0].plot([], [], "o", color=colour, label=f"{base} base")
    panels[0, 0].legend(frameon=False, fontsize=8, loc="upper right")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _of_similar_cost(rows: list[Any]) -> list[list[Any]]:
    """Methods whose costs follow one another closely, together."""
    groups: list[list[Any]] = []
    for row in sorted(rows, key=lambda each: float(each.cost)):
        if groups and row.cost < _SIMILAR * groups[-1][-1].cost:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _draw_column(axes: Any, column: Sequence[Any], gap: float, colours: dict[str, str]) -> None:
    """Methods of similar cost from the lowest NLL on: points, and names beside them that do not cover each other."""
    height, beside = -1.0, 1.03 * max(row.cost for row in column)
    for row in column:
        base, method = row.Index
        axes.errorbar([row.cost], [row.nll], yerr=[row.spread], fmt="o", color=colours[base], markersize=4, elinewidth=0.6)
        height = max(row.nll, height + gap)
        axes.annotate(
            label("plain", method),
            (row.cost, row.nll),
            xytext=(beside, height),
            va="center",
            fontsize=7,
            color=colours[base],
            arrowprops={"arrowstyle": "-", "color": colours[base], "linewidth": 0.4},
        )
