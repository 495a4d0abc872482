"""Differences between contenders, each with an interval, and the recommendation that follows by a rule fixed in advance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from calibayes.metrics.bootstrap import draws
from calibayes.metrics.evaluate import EvaluationSettings
from calibayes.metrics.intervals import ChanceDeviations
from calibayes.metrics.metric_values import values
from calibayes.metrics.prediction_arrays import as_predictions
from calibayes.recipes.compare.contenders import CONTENDERS, Contender, Entry
from calibayes.recipes.compare.difference_interval import Estimate, mean_difference
from calibayes.recipes.compare.jobs import Probs

__all__ = ["COMPARED", "DRAWS", "LEVEL", "NEGLIGIBLE", "RANKING", "Differences", "Recommendation", "decide", "differences"]

COMPARED = ("nll", "accuracy", "brier", "ece")
LEVEL = 0.95
DRAWS = 1000
_PARTS = frozenset({"means", "bins"})  # that the scores of `COMPARED` need
_SEED = 0
NEGLIGIBLE = 0.001  # nats: a tenth of a per cent of the probability of the true class

RANKING = (
    "The lowest test NLL, averaged over seeds, leads. Recommended is the simplest contender whose NLL is not clearly above "
    f"it, by more than {NEGLIGIBLE:g}, in the order {', '.join(map(str, CONTENDERS))}."
)


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences between contenders, computed when they are needed."""

    # For each contender and score, one test value per seed; the ECE without what chance adds to it, as in
    # `calibayes.metrics.paired_differences`, so it is lower than the one that `evaluate` shows.
    values: Mapping[Contender, Mapping[str, Sequence[float]]]
    # For each contender and score, the deviation of the mean over seeds in every draw of the test examples, shape
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
        """The first one's score minus the second one's, paired by seed and by test example."""
        pairs = zip(self.values[first][score], self.values[second][score], strict=True)
        worlds = self.draws[first][score][:, None] - self.draws[second][score][None]
        variance = float(worlds.var(-1).max())
        return mean_difference([a - b for a, b in pairs], variance, level=LEVEL, comparisons=self.comparisons)


def differences(entries: Mapping[Contender, Entry], targets: Tensor) -> Differences:
    """Draw the test examples again, the same draws for all contenders and seeds, and score all of them on every draw."""
    moved = {contender: [_moved(probs, targets) for probs in entry.test_probs] for contender, entry in entries.items()}
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
    """The leader, the recommendation and the reasons."""

    leader: Contender | None  # with the lowest test NLL; `None` when every NLL is infinite
    recommended: Contender | None  # the simplest that is not clearly worse
    above: dict[Contender, Estimate]  # for every other contender, its NLL minus the leader's
    better: dict[str, dict[Contender, Estimate]]  # by score, who is clearly better: the recommended score minus theirs
    gain: dict[str, Estimate] | None  # by score, the recommended one's minus the simplest one's; `None` if they are the same

    @property
    def clearly_worse(self) -> list[Contender]:
        """The contenders that are clearly worse than the leader."""
        return [each for each, difference in self.above.items() if _is_worse(difference)]


def _is_worse(above: Estimate) -> bool:
    """Return True if an NLL that is this much above the lowest is clearly worse, and not negligibly."""
    return above.low > NEGLIGIBLE


def decide(compared: Differences) -> Recommendation:
    r"""Apply the rule `RANKING`.

    The NLL is a proper score: it is lowest for the true probabilities, and neither accuracy without calibration nor
    calibration without accuracy wins. Of contenders that it does not distinguish, the simplest is recommended.

    A contender is *clearly* worse if the whole interval of its difference from the leader is above `NEGLIGIBLE`: with enough
    data any two contenders differ clearly, but a difference in the fourth digit does not matter. Intervals are corrected for
    the seven others that might have led. A contender that is truly as good as any other is therefore called clearly worse with
    a probability of at most $\alpha/2$ = 2.5 %; and since contenders are considered in a fixed order until one is not clearly
    worse, this is also the probability of passing over the first of those.
    """
    leader = min(compared.values, key=lambda each: compared.mean(each, "nll"))
    if not math.isfinite(compared.mean(leader, "nll")):
        return Recommendation(None, None, {}, {}, None)
    above = {each: compared.between(each, leader) for each in compared.values if each != leader}
    recommended = next(each for each in compared.values if each == leader or not _is_worse(above[each]))
    simplest = next(iter(compared.values))
    better: dict[str, dict[Contender, Estimate]] = {}
    for score, sign in (("ece", 1.0), ("accuracy", -1.0)):
        against = {each: compared.between(recommended, each, score) for each in compared.values if each != recommended}
        better[score] = {each: difference for each, difference in against.items() if difference.scaled(sign).above}
    scores = ("nll", "ece", "accuracy", "brier")
    gain = None if recommended == simplest else {score: compared.between(recommended, simplest, score) for score in scores}
    return Recommendation(leader, recommended, above, better, gain)
