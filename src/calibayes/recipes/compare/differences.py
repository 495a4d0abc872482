"""Differences between contenders, each with an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from calibayes.recipes.compare.contenders import Contender, Entry
from calibayes.recipes.compare.resampling import RESAMPLED, draw_counts, replicates
from calibayes.recipes.compare.uncertainty import Estimate, mean_difference

__all__ = ["DRAWS", "LEVEL", "Differences", "differences"]

LEVEL = 0.95
DRAWS = 1000


@dataclass(frozen=True, eq=False)
class Differences:
    """What differences between contenders are computed from.

    Attributes:
        values: for each contender and score, one test value per seed.
        draws: for each contender and score, the mean over seeds on every draw of the test examples.
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
        variance = float((self.draws[first][score] - self.draws[second][score]).var())
        return mean_difference([a - b for a, b in pairs], variance, level=LEVEL, comparisons=self.comparisons)


def differences(entries: Mapping[Contender, Entry], targets: Tensor) -> Differences:
    """Draw the test examples again, the same draws for all contenders and seeds, and score all of them on every draw."""
    counts = draw_counts(len(targets), DRAWS)
    draws = {}
    for contender, entry in entries.items():
        mean = torch.stack([replicates(probs, targets, counts) for probs in entry.test_probs]).mean(0)
        draws[contender] = dict(zip(RESAMPLED, mean, strict=True))
    values = {
        contender: {score: [float(getattr(each, score)) for each in entry.test] for score in RESAMPLED}
        for contender, entry in entries.items()
    }
    return Differences(values, draws)
