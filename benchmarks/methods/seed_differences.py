"""Differences between methods: over seeds on one task, over tables on all tables; intervals hold together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.methods.comparison_frame import CHANCE
from calibayes.recipes.compare.difference_interval import mean_difference

__all__ = ["ScoreDifference", "difference", "differences_from"]

Cell = tuple[str, str, str]  # base, method, way


class ScoreDifference(NamedTuple):
    """The mean of a score minus that of another method, with an interval; its ends are NaN for a single seed."""

    value: float
    low: float
    high: float
    pairs: int

    @property
    def clearly(self) -> int:
        """-1 if the interval lies below zero, 1 if it lies above, 0 otherwise."""
        return -1 if self.high < 0 else 1 if self.low > 0 else 0

    def __str__(self) -> str:
        return f"{self.value:+.4f} ({self.low:+.4f} to {self.high:+.4f})"


def difference(frame: pd.DataFrame, score: str, first: Cell, second: Cell, *, comparisons: int = 1) -> ScoreDifference:
    """First minus second, paired by task and seed, averaged over the seeds of a task if there are several tasks.

    The interval covers chance in the trainings and, where records hold it, in the test examples; for several tasks, chance in
    the tasks.

    Args:
        frame: of `comparison_frame`, the tasks to look at.
        score: a column.
        first: base, method and way.
        second: likewise.
        comparisons: for which the interval is corrected (Bonferroni).
    """
    gaps = (_of(frame, score, first) - _of(frame, score, second)).dropna()
    one_task = gaps.index.get_level_values("task").nunique() == 1
    if not one_task:
        gaps = gaps.groupby("task").mean()
    values = gaps.to_numpy(np.float64)
    if len(values) < 2:
        return ScoreDifference(float(values.mean()) if len(values) else np.nan, np.nan, np.nan, len(values))
    variance = _of_examples(frame, score, first, second) if one_task else 0.0
    estimate = mean_difference(list(values), variance, comparisons=comparisons)
    return ScoreDifference(estimate.value, estimate.low, estimate.high, len(values))


def differences_from(frame: pd.DataFrame, score: str, cells: Sequence[Cell], second: Cell) -> dict[Cell, ScoreDifference]:
    """The difference of each from the second, with intervals that hold together."""
    return {cell: difference(frame, score, cell, second, comparisons=len(cells)) for cell in cells}


def _of_examples(frame: pd.DataFrame, score: str, first: Cell, second: Cell) -> float:
    """The variance of the mean difference when the test examples are drawn again; 0 where records do not hold it."""
    if CHANCE + score not in frame:
        return 0.0
    gaps = (_of(frame, CHANCE + score, first) - _of(frame, CHANCE + score, second)).dropna()
    return float(np.stack(gaps.to_list()).mean(0).var(ddof=1)) if len(gaps) else 0.0


def _of(frame: pd.DataFrame, score: str, cell: Cell) -> pd.Series[float]:
    base, method, way = cell
    part = frame[(frame["base"] == base) & (frame["method"] == method) & (frame["way"] == way)]
    found: pd.Series[float] = part.set_index(["task", "seed"])[score]
    return found
