"""Differences between contenders, each with an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from calibayes.metrics.bootstrap import draws
from calibayes.metrics.evaluate import EvaluationSettings
from calibayes.metrics.intervals import ChanceDeviations
from calibayes.metrics.metric_values import values
from calibayes.metrics.prediction_arrays import as_predictions
from calibayes.recipes.compare.contenders import Contender, Entry
from calibayes.recipes.compare.difference_interval import Estimate, mean_difference
from calibayes.recipes.compare.jobs import Probs

__all__ = ["COMPARED", "DRAWS", "LEVEL", "Differences", "differences"]

COMPARED = ("nll", "accuracy", "brier", "ece")
LEVEL = 0.95
DRAWS = 1000
_PARTS = frozenset({"means", "bins"})  # what the scores of `COMPARED` are made of
_SEED = 0


@dataclass(frozen=True, eq=False)
class Differences:
    """What differences between contenders are computed from.

    Attributes:
        values: for each contender and score, one test value per seed; the ECE without what chance adds to it, as in
            `calibayes.metrics.paired_differences`, so it is lower than the one that `evaluate` shows.
        draws: for each contender and score, how far every draw of the test examples moves the mean over seeds, shape
            ``[worlds, draws]``: how far an ECE moves depends on the true one, and several are not ruled out.
    """

    values: Mapping[Contender, Mapping[str, Sequence[float]]]
    draws: Mapping[Contender, Mapping[str, Tensor]]

    @property
    def seeds(self) -> int:
        """How many."""
        return len(next(iter(self.values.values()))["nll"])

    @property
    def comparisons(self) -> int:
        """How many others each contender may be compared with: what Bonferroni's correction counts."""
        return max(1, len(self.values) - 1)

    def mean(self, contender: Contender, score: str) -> float:
        """A contender's score, averaged over seeds."""
        values = self.values[contender][score]
        return sum(values) / len(values)

    def between(self, first: Contender, second: Contender, score: str = "nll") -> Estimate:
        """The first one's score minus the second one's, paired by seed and by test example."""
        pairs = zip(self.values[first][score], self.values[second][score], strict=True)
        worlds = self.draws[first][score][:, None] - self.draws[second][score][None]
        variance = float(worlds.var(-1).max())
        return mean_difference([a - b for a, b in pairs], variance, level=LEVEL, comparisons=self.comparisons)


def differences(entries: Mapping[Contender, Entry], targets: Tensor) -> Differences:
    """Draw the test examples again, the same draws for all contenders and seeds, and score all of them on every draw."""
    told = {contender: [_moved(probs, targets) for probs in entry.test_probs] for contender, entry in entries.items()}
    return Differences(
        {each: {score: [seed[score].best for seed in seeds] for score in COMPARED} for each, seeds in told.items()},
        {
            each: {score: torch.stack([seed[score].deviations for seed in seeds]).mean(0) for score in COMPARED}
            for each, seeds in told.items()
        },
    )


def _moved(probs: Probs, targets: Tensor) -> dict[str, ChanceDeviations]:
    sample = EvaluationSettings(seed=_SEED, parts=_PARTS).sample(as_predictions(probs, targets, check=False), resample=True)
    resampled = draws(sample, values(sample, _PARTS), DRAWS, _SEED, _PARTS)
    return {score: resampled[score].chance_deviations(LEVEL) for score in COMPARED}
