"""Differences between methods: over seeds on one task, over tables on all tables; intervals hold together.

With five seeds, the standard deviation of a difference is known so badly that an interval corrected for many comparisons is ten
of them wide. But a task has dozens of differences with standard deviations of much the same size. So that of one difference is
drawn towards those of all others, as far as these resemble each other (Smyth 2004, https://doi.org/10.2202/1544-6115.1027).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from benchmarks.methods.comparison_frame import CHANCE
from benchmarks.methods.test_chance import DRAWS
from calibayes.recipes.compare.difference_interval import mean_difference

__all__ = ["ScoreDifference", "Spread", "common_spread", "difference", "differences_from"]

Cell = tuple[str, str, str]  # base, method, way
Floats = npt.NDArray[np.float64]
_LEVEL = 0.05
_CERTAIN = 1000.0  # degrees of freedom that are as good as infinitely many
_NEWTON = 50


class ScoreDifference(NamedTuple):
    """The mean of a score minus that of another method, with an interval; its ends are NaN for a single seed.

    Attributes:
        value: the mean.
        low: the lower end of the interval.
        high: the upper end.
        pairs: seeds, or tables, that both methods have.
        missing: those that only the second has: the first failed.
    """

    value: float
    low: float
    high: float
    pairs: int
    missing: int = 0

    @property
    def clearly(self) -> int:
        """-1 if the interval lies below zero, 1 if it lies above, 0 otherwise, or if a training failed."""
        return 0 if self.missing else -1 if self.high < 0 else 1 if self.low > 0 else 0

    def __str__(self) -> str:
        told = f"{self.value:+.4f} ({self.low:+.4f} to {self.high:+.4f})"
        return f"{told}, {self.missing} failed" if self.missing else told


class Spread(NamedTuple):
    """What the variances of many differences over seeds have in common.

    Attributes:
        variance: the typical one.
        freedom: how many degrees of freedom it is worth for each of them: many if all are alike.
    """

    variance: float
    freedom: float


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
    return differences_from(frame, score, [first], second, comparisons=comparisons)[first]


def differences_from(
    frame: pd.DataFrame, score: str, cells: Sequence[Cell], second: Cell, *, comparisons: int | None = None
) -> dict[Cell, ScoreDifference]:
    """The difference of each from the second, with intervals that hold together."""
    values = frame.pivot_table(index=["task", "seed"], columns=["base", "method", "way"], values=score, dropna=False)
    if second not in values:
        return {cell: ScoreDifference(np.nan, np.nan, np.nan, 0) for cell in cells}
    gaps = values.sub(values[second], axis=0).loc[values[second].notna()]
    spread: Spread | None = None
    if gaps.index.get_level_values("task").nunique() == 1:
        spread = common_spread(gaps.drop(columns=[second]).to_numpy(np.float64))
    found: dict[Cell, ScoreDifference] = {}
    for cell in cells:
        own = gaps[cell] if cell in gaps else pd.Series(np.nan, gaps.index)
        of_examples = 0.0 if spread is None else _of_examples(frame, score, cell, second)
        found[cell] = _difference(own, spread, of_examples, len(cells) if comparisons is None else comparisons)
    return found


def _difference(gaps: pd.Series[float], spread: Spread | None, of_examples: float, comparisons: int) -> ScoreDifference:
    if spread is None:
        gaps = gaps.groupby("task").mean()
    values = gaps.dropna().to_numpy(np.float64)
    missing = len(gaps) - len(values)
    if len(values) < 2:
        return ScoreDifference(float(values.mean()) if len(values) else np.nan, np.nan, np.nan, len(values), missing)
    if spread is None:
        estimate = mean_difference(list(values), 0.0, comparisons=comparisons)
        return ScoreDifference(estimate.value, estimate.low, estimate.high, len(values), missing)
    own = len(values) - 1
    freedom = own + spread.freedom
    variance = (own * values.var(ddof=1) + spread.freedom * spread.variance) / freedom
    tail = _LEVEL / (2 * comparisons)
    of_seeds = float(-special.stdtrit(freedom, tail)) * math.sqrt(variance / len(values))
    half = math.hypot(of_seeds, float(-special.stdtrit(DRAWS - 1, tail)) * math.sqrt(of_examples))
    mean = float(values.mean())
    return ScoreDifference(mean, mean - half, mean + half, len(values), missing)


def common_spread(gaps: Floats) -> Spread:
    r"""What the variances of the columns have in common; nothing (no degrees of freedom) if there are fewer than three.

    With variances $s_g^2$ of $d$ degrees of freedom around $s_g^2 \sim s_0^2 F_{d, d_0}$, mean and variance of their
    logarithms give $s_0^2$ and $d_0$.
    """
    whole = gaps[:, ~np.isnan(gaps).any(0)]
    own = len(gaps) - 1
    variances = whole.var(axis=0, ddof=1) if own > 0 else np.empty(0)
    variances = variances[variances > 0]  # a temperature changes no accuracy
    if len(variances) < 3:
        return Spread(0.0, 0.0)
    logs = np.log(variances) - special.digamma(own / 2) + math.log(own / 2)
    excess = float(logs.var(ddof=1) - special.polygamma(1, own / 2))
    freedom = _CERTAIN if excess <= 0 else min(_CERTAIN, 2 * _inverse_trigamma(excess))
    return Spread(float(np.exp(logs.mean() + special.digamma(freedom / 2) - math.log(freedom / 2))), freedom)


def _inverse_trigamma(value: float) -> float:
    """The number whose trigamma function is this value, by Newton's method."""
    x = 0.5 + 1 / value
    for _ in range(_NEWTON):
        trigamma = float(special.polygamma(1, x))
        x += trigamma * (1 - trigamma / value) / float(special.polygamma(2, x))
    return x


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
