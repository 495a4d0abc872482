"""The results of an experiment's trainings, and differences between parts: paired by seed, with intervals over seeds."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibayes.recipes.compare.difference_interval import mean_difference
from calibayes.recipes.single_training import TrainingSettings
from calibayes.sweeps import Trial
from reproduction.experiment import Experiment, ExperimentPart

__all__ = [
    "BySeed",
    "PartResults",
    "SeedDifference",
    "at_best_epoch",
    "at_equal_accuracy",
    "between",
    "part_results",
    "settled",
]

Floats = NDArray[np.float64]
Number = TypeVar("Number")
BySeed = dict[int, float]
_LAST = 0.25  # of the epochs, over which a score is averaged, since single epochs fluctuate
_BELOW = 0.01  # of accuracy: compared this far below the lower maximum


@dataclass(frozen=True)
class PartResults:
    """The results of a part, in the order of its seeds, without missing and failed trainings."""

    part: ExperimentPart
    settings: tuple[TrainingSettings, ...]  # of the trainings with a result
    results: tuple[dict[str, Any], ...]  # theirs

    @property
    def name(self) -> str:
        """The part's name."""
        return self.part.name

    @property
    def missing(self) -> int:
        """The number of trainings without a result."""
        return len(self.part.settings) - len(self.results)

    def final(self, *path: str) -> Floats:
        """One number of the trained network for each seed, such as ``final("test", "ece")``."""
        return np.array([_number_at(result["final"], path) for result in self.results], dtype=np.float64)

    def final_by_seed(self, *path: str) -> BySeed:
        """The same by seed; NaN where there is none."""
        return {each.seed: float(value) for each, value in zip(self.settings, self.final(*path), strict=True)}

    def by_seed(self, number: Callable[[list[dict[str, Any]]], Number]) -> dict[int, Number]:
        """One number for each seed, computed from the epochs that were scored."""
        pairs = zip(self.settings, self.results, strict=True)
        return {each.seed: number([epoch for epoch in result["epochs"] if "test" in epoch]) for each, result in pairs}

    def over_epochs(self, *path: str) -> tuple[Floats, Floats]:
        """The epochs that were scored, and one number for each seed (row) and epoch (column)."""
        epochs = self.by_seed(lambda scored: [epoch["epoch"] for epoch in scored])
        values = self.by_seed(lambda scored: [_number_at(epoch, path) for epoch in scored])
        return np.array(next(iter(epochs.values()), []), dtype=np.float64), np.array(list(values.values()), dtype=np.float64)

    def epoch_seconds(self) -> float:
        """The time of the fastest epoch of training, when little else was running."""
        return float(min(epoch["seconds"] for result in self.results for epoch in result["epochs"]))


def part_results(experiment: Experiment, trials: Iterable[Trial]) -> list[PartResults]:
    """The results of every part of an experiment among these trials."""
    known = {json.dumps(trial.settings, sort_keys=True): trial.result for trial in trials if trial.error is None}
    parts = []
    for part in experiment.parts:
        results = [(each, known.get(json.dumps(each.to_dict(), sort_keys=True))) for each in part.settings]
        done = [(each, result) for each, result in results if result is not None]
        parts.append(PartResults(part, tuple(each for each, _ in done), tuple(result for _, result in done)))
    return parts


def _number_at(tree: Any, path: tuple[str, ...]) -> float:
    """The number at the end of a path of names; NaN for None."""
    for name in path:
        tree = tree[name]
    return math.nan if tree is None else float(tree)


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
    """First minus second over common seeds; the interval is corrected for the number of comparisons (Bonferroni)."""
    other = second if isinstance(second, dict) else dict.fromkeys(first, second)
    apart = [value - other[seed] for seed, value in first.items() if seed in other]
    apart = [each for each in apart if math.isfinite(each)]
    if len(apart) < 2:
        return SeedDifference(name, apart[0] if apart else math.nan, math.nan, math.nan, len(apart))
    estimate = mean_difference(apart, 0.0, comparisons=comparisons)
    return SeedDifference(name, estimate.value, estimate.low, estimate.high, len(apart))


def settled(part: PartResults, *path: str) -> BySeed:
    """A score of each training, averaged over the last quarter of its epochs."""

    def score(scored: list[dict[str, Any]]) -> float:
        first = (1 - _LAST) * scored[-1]["epoch"]
        return float(np.mean([_number_at(epoch, path) for epoch in scored if epoch["epoch"] > first]))

    return part.by_seed(score)


def at_best_epoch(part: PartResults, *path: str) -> BySeed:
    """A score of each training at the epoch with the lowest NLL on validation examples."""
    return part.by_seed(lambda scored: _number_at(min(scored, key=lambda epoch: epoch["validation"]["nll"]), path))


def at_equal_accuracy(first: PartResults, second: PartResults, *path: str) -> tuple[BySeed, BySeed]:
    """A score of both at the same validation accuracy, a point below the lower of both maxima, which are partly chance.

    Between two epochs it is interpolated.
    """
    curves = [part.by_seed(lambda scored: _curve(scored, path)) for part in (first, second)]
    both: tuple[BySeed, BySeed] = ({}, {})
    for seed in curves[0].keys() & curves[1].keys():
        level = min(float(curve[seed][0].max()) for curve in curves) - _BELOW
        for scores, curve in zip(both, curves, strict=True):
            scores[seed] = float(np.interp(level, *curve[seed]))
    return both


def _curve(scored: list[dict[str, Any]], path: tuple[str, ...]) -> tuple[Floats, Floats]:
    """New highs of the validation accuracy, and the score at each."""
    reached: list[tuple[float, float]] = []
    for epoch in scored:
        right = epoch["validation"]["accuracy"]
        if not reached or right > reached[-1][0]:
            reached.append((right, _number_at(epoch, path)))
    accuracies, scores = np.array(reached).T
    return accuracies, scores
