"""Which contender to use: the rule, fixed before any number was known."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibayes.recipes.compare.contender_differences import Differences
from calibayes.recipes.compare.contenders import CONTENDERS, Contender
from calibayes.recipes.compare.difference_interval import Estimate

__all__ = ["NEGLIGIBLE", "RANKING", "Recommendation", "decide", "is_worse"]

NEGLIGIBLE = 0.001  # nats: a tenth of a per cent in the probability of the true class, which nobody would act on

RANKING = (
    "The lowest test NLL, averaged over seeds, leads. Recommended is the simplest contender whose NLL is not clearly above "
    f"it, by more than {NEGLIGIBLE:g}, in the order {', '.join(map(str, CONTENDERS))}."
)


@dataclass(frozen=True)
class Recommendation:
    """What follows from the numbers."""

    leader: Contender | None  # who has the lowest test NLL; `None` when every NLL is infinite
    recommended: Contender | None  # the simplest that is not clearly worse
    above: dict[Contender, Estimate]  # for every contender but the leader, by how much its NLL is above the leader's
    # better: for scores beside the NLL, who is clearly better than the recommended one, and its score minus theirs
    better: dict[str, dict[Contender, Estimate]]
    # gain: for every score, the recommended one's minus the simplest one's (`None` if that is the same)
    gain: dict[str, Estimate] | None

    @property
    def clearly_worse(self) -> list[Contender]:
        """Who is clearly worse than the leader."""
        return [each for each, difference in self.above.items() if is_worse(difference)]


def is_worse(above: Estimate) -> bool:
    """Whether an NLL that is this much above the lowest is clearly worse, and by more than nothing to speak of."""
    return above.low > NEGLIGIBLE


def decide(found: Differences) -> Recommendation:
    r"""Apply the rule `RANKING`.

    The NLL is a proper score: it is lowest for the true probabilities, and neither accuracy without calibration nor
    calibration without accuracy can win it. Of contenders that it does not tell apart, the simplest is the one to use.

    A contender is *clearly* worse if the whole interval of its difference to the leader is above `NEGLIGIBLE`: with enough
    data any two contenders differ clearly, and a difference in the fourth digit is no reason for anything. Intervals are
    corrected for the seven others that might have come out as leader. A contender that in truth is as good as any other is
    therefore called clearly worse with a probability of at most $\alpha/2$ = 2.5 %; and since contenders are looked at in a
    fixed order until one is not clearly worse, so is the probability that the first of those is passed over.
    """
    leader = min(found.values, key=lambda each: found.mean(each, "nll"))
    if not math.isfinite(found.mean(leader, "nll")):
        return Recommendation(None, None, {}, {}, None)
    above = {each: found.between(each, leader) for each in found.values if each != leader}
    recommended = next(each for each in found.values if each == leader or not is_worse(above[each]))
    simplest = next(iter(found.values))
    better: dict[str, dict[Contender, Estimate]] = {}
    for score, sign in (("ece", 1.0), ("accuracy", -1.0)):
        against = {each: found.between(recommended, each, score) for each in found.values if each != recommended}
        better[score] = {each: difference for each, difference in against.items() if difference.scaled(sign).above}
    scores = ("nll", "ece", "accuracy", "brier")
    gain = None if recommended == simplest else {score: found.between(recommended, simplest, score) for score in scores}
    return Recommendation(leader, recommended, above, better, gain)
