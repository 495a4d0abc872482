"""Differences between two sets of trainings: paired by seed, with intervals over seeds."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from calibayes.recipes.compare.difference_interval import mean_difference
from reproduction.experiment_results import Floats, PartResults, number_at

__all__ = ["BySeed", "SeedDifference", "at_best_epoch", "at_equal_accuracy", "between", "settled"]

BySeed = dict[int, float]
_LAST = 0.25  # of the epochs, over which a score is averaged: single epochs jump
_BELOW = 0.01  # of accuracy: how far below the best of both they are compared


class SeedDifference(NamedTuple):
    """A mean difference over seeds with Student's interval, whose ends are NaN for a single seed."""

    name: str
    value: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        ends = f" ({100 * self.low:.1f} to {100 * self.high:.1f})" if self.seeds > 1 else ""
        return f"{self.name}: {100 * self.value:+.1f}{ends}"


def between(name: str, first: BySeed, second: BySeed | float = 0.0, *, comparisons: int = 1) -> SeedDifference:
    """First minus second over the seeds that both have; the interval allows for so many comparisons (Bonferroni)."""
    other = second if isinstance(second, dict) else dict.fromkeys(first, second)
    apart = [value - other[seed] for seed, value in first.items() if seed in other]
    apart = [each for each in apart if math.isfinite(each)]
    if len(apart) < 2:
        return SeedDifference(name, apart[0] if apart else math.nan, math.nan, math.nan, len(apart))
    found = mean_difference(apart, 0.0, comparisons=comparisons)
    return SeedDifference(name, found.value, found.low, found.high, len(apart))


def settled(part: PartResults, *path: str) -> BySeed:
    """A score of each training, averaged over the last quarter of its epochs."""

    def score(scored: list[dict[str, Any]]) -> float:
        first = (1 - _LAST) * scored[-1]["epoch"]
        return float(np.mean([number_at(epoch, path) for epoch in scored if epoch["epoch"] > first]))

    return part.by_seed(score)


def at_best_epoch(part: PartResults, *path: str) -> BySeed:
    """A score of each training at the epoch with the lowest NLL on validation examples."""
    return part.by_seed(lambda scored: number_at(min(scored, key=lambda epoch: epoch["validation"]["nll"]), path))


def at_equal_accuracy(first: PartResults, second: PartResults, *path: str) -> tuple[BySeed, BySeed]:
    """A score of both where they are equally often right on validation examples: on the way to the lower of both maxima.

    Between two epochs it is interpolated; the level lies a point below the maximum, which one of them owes to chance.
    """
    curves = [part.by_seed(lambda scored: _curve(scored, path)) for part in (first, second)]
    found: tuple[BySeed, BySeed] = ({}, {})
    for seed in curves[0].keys() & curves[1].keys():
        level = min(float(curve[seed][0].max()) for curve in curves) - _BELOW
        for scores, curve in zip(found, curves, strict=True):
            scores[seed] = float(np.interp(level, *curve[seed]))
    return found


def _curve(scored: list[dict[str, Any]], path: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Validation accuracies that have not been reached before, and the score at each."""
    reached: list[tuple[float, float]] = []
    for epoch in scored:
        right = epoch["validation"]["accuracy"]
        if not reached or right > reached[-1][0]:
            reached.append((right, number_at(epoch, path)))
    accuracies, scores = np.array(reached).T
    return accuracies, scores
