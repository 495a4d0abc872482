"""Differences between contenders, each with an interval, and the recommendation that follows by a rule fixed in advance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

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

__all__ = [
    "COMPARED",
    "DRAWS",
    "LEVEL",
    "NEGLIGIBLE",
    "RANKING",
    "Differences",
    "Recommendation",
    "decide",
    "differences",
    "is_clearly_worse",
]

COMPARED = ("nll", "accuracy", "brier", "ece")
LEVEL = 0.95
DRAWS = 1000
_PARTS = frozenset({"means", "bins"})  # that the scores of `COMPARED` need
_SEED = 0
NEGLIGIBLE = 0.001  # nats: a tenth of a per cent of the probability of the true class

RANKING = (
    "The lowest validation NLL, averaged over seeds, leads. Recommended is the simplest contender with a validation NLL level "
    "with it: above it by at most one standard error of their difference, paired over seeds and validation examples (but not "
    "more than the median of these standard errors, so that an erratic method is not level for being erratic), or by at "
    f"most {NEGLIGIBLE:g}. Simplest are the baselines, then methods with fewer networks, with one set of weights, and without "
    "a calibration term. The test examples have no part in it."
)


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences between contenders, computed when they are needed."""

    # For each contender and score, one value per seed; the ECE without what chance adds to it, as in
    # `calibayes.metrics.paired_differences`, so it is lower than the one that `evaluate` shows.
    values: Mapping[Contender, Mapping[str, Sequence[float]]]
    # For each contender and score, the deviation of the mean over seeds in every draw of the examples, shape
    # ``[worlds, draws]``: that of an ECE depends on the true one, and several are possible.
    draws: Mapping[Contender, Mapping[str, Tensor]]

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(next(iter(self.values.values()))["nll"])

    @property
    def comparisons(self) -> int:
        """The number of other contenders, for Bonferroni's correction."""
        return max(1, len(self.values) - 1)

    def mean(self, contender: Contender, score: str) -> float:
        """A contender's score, averaged over seeds."""
        values = self.values[contender][score]
        return sum(values) / len(values)

    def between(self, first: Contender, second: Contender, score: str = "nll") -> Estimate:
        """The first one's score minus the second one's, paired by seed and by example."""
        pairs = zip(self.values[first][score], self.values[second][score], strict=True)
        worlds = self.draws[first][score][:, None] - self.draws[second][score][None]
        variance = float(worlds.var(-1).max())
        return mean_difference([a - b for a, b in pairs], variance, level=LEVEL, comparisons=self.comparisons)


def differences(
    entries: Mapping[Contender, Entry], targets: Tensor, part: Literal["validation", "test"] = "test"
) -> Differences:
    """Draw the examples again, the same draws for all contenders and seeds, and score all of them on every draw.

    Args:
        entries: the contenders.
        targets: the true classes of the part's examples.
        part: whose predictions to compare.
    """
    moved = {
        contender: [_moved(probs, targets) for probs in (entry.test_probs if part == "test" else entry.validation_probs)]
        for contender, entry in entries.items()
    }
    return Differences(
        {each: {score: [seed[score].best for seed in seeds] for score in COMPARED} for each, seeds in moved.items()},
        {
            each: {score: torch.stack([seed[score].deviations for seed in seeds]).mean(0) for score in COMPARED}
            for each, seeds in moved.items()
        },
    )


def _moved(probs: Probs, targets: Tensor) -> dict[str, ChanceDeviations]:
    sample = EvaluationSettings(seed=_SEED, parts=_PARTS).sample(as_predictions(probs, targets, check=False), resample=True)
    drawn = draws(sample, values(sample, _PARTS), DRAWS, _SEED, _PARTS)
    return {score: drawn[score].chance_deviations(LEVEL) for score in COMPARED}


@dataclass(frozen=True)
class Recommendation:
    """The leader on validation examples, the recommendation and the reasons."""

    leader: Contender | None  # with the lowest validation NLL; `None` when every NLL is infinite
    recommended: Contender | None  # the simplest that is level with the leader
    above: dict[Contender, Estimate]  # for every other contender, its validation NLL minus the leader's

    @property
    def clearly_worse(self) -> list[Contender]:
        """The contenders that are clearly worse than the leader."""
        return [each for each, difference in self.above.items() if is_clearly_worse(difference)]


def is_clearly_worse(above: Estimate) -> bool:
    """Return True if an NLL that is this much above another is clearly worse, and not negligibly."""
    return above.low > NEGLIGIBLE


def _is_level(above: Estimate, usual_error: float) -> bool:
    """Return True if an NLL that is this much above the lowest is level with it.

    A standard error of more than ``usual_error`` counts as that: else what varies much would be level more easily.
    """
    return above.value <= max(NEGLIGIBLE, min(above.standard_error, usual_error))


def decide(validation: Differences) -> Recommendation:
    r"""Apply the rule `RANKING` to the differences on validation examples.

    The NLL is a proper score: it is lowest for the true probabilities, and neither accuracy without calibration nor
    calibration without accuracy wins. Of contenders that are level, the simplest is recommended: what is simple is cheaper to
    train, to predict with and to explain, and the lowest of several NLLs owes part of its lead to chance. Level is a matter of
    one standard error (the rule of Breiman et al., 1984, for the size of trees), not of an interval that contains zero: on
    few examples every interval does, and the simplest would be recommended however much worse it looks. Nor may a method be
    recommended because its own standard error is large: beyond the median of all, it does not count.

    A contender is called *clearly* worse only if the whole interval of its difference from the leader, corrected for the
    number of contenders, lies above `NEGLIGIBLE`: with enough data any two contenders differ clearly, but a difference in
    the fourth digit does not matter.
    """
    leader = min(validation.values, key=lambda each: validation.mean(each, "nll"))
    if not math.isfinite(validation.mean(leader, "nll")):
        return Recommendation(None, None, {})
    above = {each: validation.between(each, leader) for each in validation.values if each != leader}
    errors = [each.standard_error for each in above.values() if math.isfinite(each.standard_error)]
    usual = median(errors) if errors else 0.0
    recommended = next(each for each in validation.values if each == leader or _is_level(above[each], usual))
    return Recommendation(leader, recommended, above)
