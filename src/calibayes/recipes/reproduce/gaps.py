"""How much two sets of trainings differ: paired by seed, with intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.recipes.reproduce.found import FoundPart

__all__ = ["Gap", "at_best_epoch", "at_equal_accuracy", "between", "settled"]

BySeed = dict[int, float]
LEVEL = 0.95
_LAST = 0.25  # of the epochs, over which a score is averaged: single epochs jump
_BELOW = 0.01  # of accuracy: how far below the best of both they are compared


@dataclass(frozen=True)
class Gap:
    """A mean difference over seeds with Student's interval.

    Attributes:
        name: of what.
        value: the mean.
        low: where the interval begins; NaN for a single seed.
        high: where it ends.
        seeds: how many there were.
    """

    name: str
    value: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        ends = f" ({100 * self.low:.1f} to {100 * self.high:.1f})" if self.seeds > 1 else ""
        return f"{self.name}: {100 * self.value:+.1f}{ends}"


def between(name: str, first: BySeed, second: BySeed | float = 0.0, *, comparisons: int = 1) -> Gap:
    """First minus second over the seeds that both have; the interval allows for so many comparisons (Bonferroni)."""
    from scipy.stats import t

    other = second if isinstance(second, dict) else dict.fromkeys(first, second)
    apart = np.array([value - other[seed] for seed, value in first.items() if seed in other])
    apart = apart[np.isfinite(apart)]
    if len(apart) < 2:
        value = float(apart[0]) if len(apart) else math.nan
        return Gap(name, value, math.nan, math.nan, len(apart))
    value = float(apart.mean())
    tail = (1 - LEVEL) / comparisons / 2
    reach = float(t.ppf(1 - tail, len(apart) - 1) * apart.std(ddof=1) / math.sqrt(len(apart)))
    return Gap(name, value, value - reach, value + reach, len(apart))


def settled(part: FoundPart, *path: str) -> BySeed:
    """A score of each training, averaged over the looks at it in the last quarter of its epochs."""

    def score(looks: list[dict[str, Any]]) -> float:
        last = looks[-1]["epoch"]
        return float(np.mean([_at(look, path) for look in looks if look["epoch"] > (1 - _LAST) * last]))

    return _of_looks(part, score)


def at_best_epoch(part: FoundPart, *path: str) -> BySeed:
    """A score of each training at the epoch with the lowest NLL on validation examples."""
    return _of_looks(part, lambda looks: _at(min(looks, key=lambda look: _at(look, ("validation", "nll"))), path))


def at_equal_accuracy(first: FoundPart, second: FoundPart, *path: str) -> tuple[BySeed, BySeed]:
    """A score of both where they are equally often right on validation examples: on the way to the lower of both maxima.

    Between two looks it is interpolated; the level lies a point below the maximum, which one of them owes to chance.
    """
    curves = [_of_looks(part, lambda looks: _curve(looks, path)) for part in (first, second)]
    found: tuple[BySeed, BySeed] = ({}, {})
    for seed in curves[0].keys() & curves[1].keys():
        level = min(float(curve[seed][0].max()) for curve in curves) - _BELOW
        for scores, curve in zip(found, curves, strict=True):
            scores[seed] = float(np.interp(level, *curve[seed]))
    return found


def _curve(looks: list[dict[str, Any]], path: tuple[str, ...]) -> tuple[Any, Any]:
    """Validation accuracies that have not been reached before, and the score at each."""
    reached: list[tuple[float, float]] = []
    for look in looks:
        right = _at(look, ("validation", "accuracy"))
        if not reached or right > reached[-1][0]:
            reached.append((right, _at(look, path)))
    columns = np.array(reached).T
    return columns[0], columns[1]


def _of_looks(part: FoundPart, made: Callable[[list[dict[str, Any]]], Any]) -> dict[int, Any]:
    return {
        each.seed: made([epoch for epoch in result["epochs"] if "test" in epoch])
        for each, result in zip(part.settings, part.results, strict=True)
    }


def _at(tree: Mapping[str, Any], path: tuple[str, ...]) -> float:
    found: Any = tree
    for name in path:
        found = found[name]
    return float(found)
