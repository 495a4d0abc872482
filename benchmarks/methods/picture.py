"""NLL against cost: which method is worth its price."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.methods.comparison_frame import label

__all__ = ["draw_costs"]


def draw_costs(frame: pd.DataFrame, titles: dict[str, str], path: Path, *, way: str = "best") -> None:
    """Every method's test NLL over the cost of its training, a panel for each task, both bases in colours of their own."""
    from matplotlib import pyplot as plt

    from calibayes.displays.style import BLUE, VERMILLION

    colours = {"plain": BLUE, "regularised": VERMILLION}
    figure, panels = plt.subplots(1, len(titles), figsize=(6.2 * len(titles), 6), layout="constrained", squeeze=False)
    for axes, (task, title) in zip(panels[0], titles.items(), strict=True):
        part = frame[(frame["task"] == task) & (frame["way"] == way) & (frame["trainings"] > 0)]
        scores = part.groupby(["base", "method"], sort=False).agg(
            nll=("nll", "mean"), spread=("nll", "std"), cost=("trainings", "mean")
        )
        costs = sorted(scores["cost"].round(2).unique())
        gap = (scores["nll"].max() - scores["nll"].min()) / 34
        for place, cost in enumerate(costs):
            column = scores[scores["cost"].round(2) == cost].sort_values("nll")
            _draw_column(axes, list(column.itertuples()), place, gap, colours)
        axes.set_xticks(range(len(costs)), [f"{cost:g}×" for cost in costs])
        axes.set_xlim(-0.3, len(costs) - 0.1)
        axes.set_xlabel("cost of training, in plain trainings")
        axes.set_ylabel("test NLL (lower is better)")
        axes.set_title(title, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    for base, colour in colours.items():
        panels[0][-1].plot([], [], "o", color=colour, label=f"{base} base")
    panels[0][-1].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_column(axes: Any, column: Sequence[Any], x: float, gap: float, colours: dict[str, str]) -> None:
    """Methods of one cost from the lowest NLL on: points, and names beside them that do not cover each other."""
    height = -1.0
    for row in column:
        base, method = row.Index
        axes.errorbar([x], [row.nll], yerr=[row.spread], fmt="o", color=colours[base], markersize=4, elinewidth=0.6)
        height = max(row.nll, height + gap)
        axes.annotate(
            label("plain", method),
            (x, row.nll),
            xytext=(x + 0.1, height),
            va="center",
            fontsize=7,
            color=colours[base],
            arrowprops={"arrowstyle": "-", "color": colours[base], "linewidth": 0.4},
        )
