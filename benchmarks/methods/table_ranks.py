"""Ranks of methods over tables, and which of them the tables tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.methods.comparison_frame import label
from benchmarks.methods.seed_differences import Cell

__all__ = ["MOST_METHODS", "Ranks", "draw_ranks", "table_ranks"]

MOST_METHODS = 8  # a few dozen tables tell few methods apart
_LEVEL = 0.05


class Ranks(NamedTuple):
    """Mean ranks over tables, the best first.

    Attributes:
        cells: base, method and way.
        means: their mean ranks.
        tables: how many there are.
        friedman: the p-value of no difference between any of them.
        alike: groups of methods that follow one another and are not told apart by Wilcoxon's signed-rank tests, corrected for
            their number (Holm): indices of the first and the last.
    """

    cells: tuple[Cell, ...]
    means: tuple[float, ...]
    tables: int
    friedman: float
    alike: tuple[tuple[int, int], ...]


def table_ranks(frame: pd.DataFrame, score: str, cells: Sequence[Cell]) -> Ranks:
    """Rank methods by a score that is better when lower, its mean over the seeds of each table.

    Tables that some method has no score for are left out.
    """
    if not 2 < len(cells) <= MOST_METHODS:
        raise ValueError(f"Expected 3 to {MOST_METHODS} methods, but got {len(cells)}.")
    means = frame.groupby(["task", "base", "method", "way"])[score].mean().unstack("task")
    values = means.loc[list(cells)].dropna(axis=1).to_numpy(np.float64)
    ranks = stats.rankdata(values, axis=0).mean(1)
    order = np.argsort(ranks, kind="stable")
    values, ranks = values[order], ranks[order]
    return Ranks(
        tuple(cells[place] for place in order),
        tuple(map(float, ranks)),
        values.shape[1],
        float(stats.friedmanchisquare(*values).pvalue),
        _alike(values),
    )


def _alike(values: np.ndarray) -> tuple[tuple[int, int], ...]:
    pairs = list(combinations(range(len(values)), 2))
    p = np.array([stats.wilcoxon(values[i], values[j]).pvalue for i, j in pairs])
    told_apart: set[tuple[int, int]] = set()
    for step, place in enumerate(np.argsort(p, kind="stable")):
        if p[place] * (len(p) - step) > _LEVEL:
            break
        told_apart.add(pairs[place])
    groups: list[tuple[int, int]] = []
    for first in range(len(values)):
        last = first
        while last + 1 < len(values) and not any((each, last + 1) in told_apart for each in range(first, last + 1)):
            last += 1
        if last > first and not any(low <= first and last <= high for low, high in groups):
            groups.append((first, last))
    return tuple(groups)


def draw_ranks(ranks: Ranks, score: str, path: Path) -> None:
    """A line of mean ranks with the methods' names; bars join methods that the tables do not tell apart."""
    from matplotlib import pyplot as plt

    from calibayes.displays.style import BLUE, VERMILLION

    count = len(ranks.cells)
    figure, axes = plt.subplots(figsize=(8, 0.9 + 0.34 * count), layout="constrained")
    for place, (cell, mean) in enumerate(zip(ranks.cells, ranks.means, strict=True)):
        axes.plot([mean], [place], "o", color=BLUE)
        axes.annotate(f"{label(*cell)}  {mean:.2f}", (mean, place), xytext=(8, 0), textcoords="offset points", va="center")
    for number, (first, last) in enumerate(ranks.alike):
        x = min(ranks.means) - 0.25 - 0.12 * number
        axes.plot([x, x], [first - 0.2, last + 0.2], color=VERMILLION, linewidth=3, solid_capstyle="butt")
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xlim(min(ranks.means) - 0.4 - 0.12 * len(ranks.alike), max(ranks.means) + 2.5)
    axes.set_yticks([])
    axes.set_xlabel(f"mean rank by {score} over {ranks.tables} tables (1 is best); red bars: not told apart")
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
