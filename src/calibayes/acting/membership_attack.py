r"""The success of a membership attack: AUC, the rate of members found at a low rate of false alarms, and the advantage."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibayes.acting.acting_inputs import read_numbers
from calibayes.acting.detection import auroc, auroc_interval, detection_probability, detection_probability_interval
from calibayes.acting.exact_bounds import clopper_pearson
from calibayes.checks import fraction
from calibayes.metrics.intervals import Interval
from calibayes.metrics.prediction_arrays import Array

__all__ = ["MembershipAttack", "membership_attack", "tpr_at_fpr"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MembershipAttack:
    r"""The success of an attack whose score is higher for members.

    Guessing has an AUC of 0.5, a TPR of ``fpr`` and an advantage of 0.

    Attributes:
        auc: the probability that a member has a higher score than a non-member; with DeLong's interval.
        tpr: the share of members above the lowest threshold that at most the share ``fpr`` of the non-members exceed.
        tpr_interval: for the share of members above the threshold that ``fpr`` of *all* such non-members exceed. It covers
            chance in the members and in the threshold, for any distribution of scores and any number of examples, so it is
            conservative. It does not cover chance in the training of the model.
        advantage: how much better than a coin the best attack by the score is, if half of the examples are members:
            $2P(\text{right}) - 1$, the largest difference between true and false alarms, judged on examples that the thresholds
            were not chosen on; see `calibayes.acting.detection`.
        fpr: the rate of false alarms of ``tpr``.
        level: of the intervals.
    """

    auc: float
    auc_interval: Interval
    tpr: float
    tpr_interval: Interval
    advantage: float
    advantage_interval: Interval
    fpr: float
    level: float


def membership_attack(members: Array, non_members: Array, *, fpr: float = 0.01, level: float = 0.95) -> MembershipAttack:
    """Measure how well a score tells the examples that a model was trained on from others.

    Args:
        members: the scores of training examples; see `membership_scores` and `lira_scores`.
        non_members: the scores of other examples of the same kind.
        fpr: the rate of false alarms at which members are to be found. It is coarse below ``1 / len(non_members)``.
        level: of the intervals.

    Examples:
        >>> generator = torch.Generator().manual_seed(0)
        >>> members, others = 1 + torch.randn(2000, generator=generator), torch.randn(2000, generator=generator)
        >>> attack = membership_attack(members, others)
        >>> round(attack.auc, 2), round(attack.tpr, 2), round(attack.advantage, 1)  # 0.76, 0.09 and 0.38 with endless data
        (0.77, 0.09, 0.4)
        >>> attack.tpr_interval.low < 0.0924 < attack.tpr_interval.high
        True
    """
    fraction("level", level)
    high, low = read_numbers("members", members).numpy(), read_numbers("non_members", non_members).numpy()
    better_than_a_coin = [
        2 * share - 1 for share in (detection_probability(low, high), *detection_probability_interval(low, high, level))
    ]
    return MembershipAttack(
        auc=auroc(low, high),
        auc_interval=auroc_interval(low, high, level),
        tpr=tpr_at_fpr(high, low, fpr),
        tpr_interval=_tpr_interval(high, low, fraction("fpr", fpr), level),
        advantage=better_than_a_coin[0],
        advantage_interval=Interval(*better_than_a_coin[1:]),
        fpr=fpr,
        level=level,
    )


def tpr_at_fpr(members: Array | Floats, non_members: Array | Floats, fpr: float = 0.01) -> float:
    """The largest share of members that a threshold finds while at most the share ``fpr`` of non-members raises an alarm.

    Examples:
        >>> tpr_at_fpr(torch.tensor([0.5, 2.0, 3.0, 4.0]), torch.tensor([0.0, 1.0, 2.5, 0.1]), fpr=0.25)
        0.75
        >>> tpr_at_fpr(torch.tensor([0.5, 2.0, 3.0, 4.0]), torch.tensor([0.0, 1.0, 2.5, 0.1]), fpr=0.01)
        0.5
    """
    high, low = read_numbers("members", members).numpy(), read_numbers("non_members", non_members).numpy()
    alarms = math.floor(fraction("fpr", fpr) * len(low) + 1e-9)
    return float((high > np.sort(low)[len(low) - 1 - alarms]).mean())


def _tpr_interval(members: Floats, non_members: Floats, fpr: float, level: float) -> Interval:
    r"""An interval of $P(\text{member} > q)$, with $q$ the $1 - \mathrm{fpr}$ quantile of non-members.

    An exact interval of $q$ (order statistics) and, at both its ends, Clopper and Pearson's of the share above. Each end of
    either fails with probability $\alpha / 4$ at most, so both hold together with probability $1 - \alpha$ at least.
    """
    from scipy.special import bdtr

    count, tail = len(non_members), (1 - level) / 4
    ordered = np.concatenate(([-np.inf], np.sort(non_members), [np.inf]))
    below = bdtr(np.arange(count + 1), count, 1 - fpr)  # the probability that at most 0, 1, … of them are below the quantile
    lowest = int(np.searchsorted(below, tail, side="right"))  # the order statistic that is too high with probability `tail`
    highest = int(np.searchsorted(below, 1 - tail, side="left")) + 1
    certainty = 1 - (1 - level) / 2
    found = [int((members > ordered[place]).sum()) for place in (highest, lowest)]
    ends = [clopper_pearson(each, len(members), certainty) for each in found]
    return Interval(ends[0].low, ends[1].high)
