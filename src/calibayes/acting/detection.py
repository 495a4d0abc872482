r"""The quality of outsider scores: AUROC, AUPR, FPR at 95 % and detection probability, each with an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibayes.acting.acting_inputs import read_numbers
from calibayes.acting.exact_bounds import clopper_pearson, lower_bound, upper_bound
from calibayes.checks import fraction, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.intervals import Interval
from calibayes.metrics.prediction_arrays import Array
from calibayes.randomness import derived_seed

__all__ = [
    "Detection",
    "auroc",
    "auroc_interval",
    "average_precision",
    "detection",
    "detection_probability",
    "detection_probability_interval",
    "fpr_at_tpr",
]

Floats = npt.NDArray[np.float64]
_FOLDS = 5
_LEAST_SHARE = 1e-6


@dataclass(frozen=True)
class Detection:
    """The quality of a score that is higher for outsiders.

    Attributes:
        auroc: the probability that an outsider has a higher score than an insider; with DeLong's interval.
        aupr: the average precision, outsiders being the positives; it depends on their share.
        fpr95: the share of outsiders that pass at the threshold where 95 % of the insiders pass.
        detection_probability: how often the best detector by the score is right, if half of the inputs are outsiders.
        level: of the intervals; those of AUPR and FPR come from a bootstrap of insiders and outsiders apart, widened by exact
            bounds where resampling shows no spread.
    """

    auroc: float
    auroc_interval: Interval
    aupr: float
    aupr_interval: Interval
    fpr95: float
    fpr95_interval: Interval
    detection_probability: float
    detection_probability_interval: Interval
    level: float


def detection(insiders: Array, outsiders: Array, *, level: float = 0.95, replicates: int = 200, seed: int = 0) -> Detection:
    """Measure how well a score tells outsiders from insiders.

    Args:
        insiders: the scores of examples like those in training.
        outsiders: the scores of others; higher ones are better.
        level: of the intervals.
        replicates: of the bootstrap.
        seed: of the bootstrap.

    Examples:
        >>> generator = torch.Generator().manual_seed(0)
        >>> inside, outside = torch.randn(500, generator=generator), 2 + torch.randn(400, generator=generator)
        >>> measured = detection(inside, outside)
        >>> round(measured.auroc, 2), round(measured.fpr95, 1), round(measured.detection_probability, 2)
        (0.91, 0.4, 0.82)
    """
    fraction("level", level)
    positive_integer("replicates", replicates)
    low, high = read_numbers("insiders", insiders).numpy(), read_numbers("outsiders", outsiders).numpy()
    generator = np.random.default_rng(derived_seed(seed, "detection"))
    measures = (average_precision, fpr_at_tpr)
    values = [measure(low, high) for measure in measures]
    draws = [
        [measure(*resampled) for measure in measures]
        for resampled in ((generator.choice(low, len(low)), generator.choice(high, len(high))) for _ in range(replicates))
    ]
    tails = ((1 - level) / 2, (1 + level) / 2)
    precisions, passing_shares = (np.array(column) for column in zip(*draws, strict=True))
    of_precision = _from_biased_draws(values[0], precisions, level, max(1, min(len(low), len(high)) - 1))
    ends = [of_precision, Interval(*map(float, np.quantile(passing_shares, tails)))]
    # Where all replicates agree, the scores may still be separated by luck: at least the exact interval of the share.
    if values[0] == 1:
        ends[0] = Interval(_least_average_precision(len(low), len(high), level), 1.0)
    elif len(np.unique(np.concatenate((low, high)))) == 1:
        ends[0] = _average_precision_of_ties(len(low), len(high), level)
    passing = round(values[1] * len(high))
    exact = clopper_pearson(passing, len(high), level)
    ends[1] = Interval(min(ends[1].low, exact.low), max(ends[1].high, exact.high))
    return Detection(
        auroc=auroc(low, high),
        auroc_interval=auroc_interval(low, high, level),
        aupr=values[0],
        aupr_interval=ends[0],
        fpr95=values[1],
        fpr95_interval=ends[1],
        detection_probability=detection_probability(low, high),
        detection_probability_interval=detection_probability_interval(low, high, level),
        level=level,
    )


def _from_biased_draws(value: float, draws: Floats, level: float, freedom: int) -> Interval:
    """The interval of a share that is biased upwards in small samples, and as much again in their replicates.

    On the scale of log-odds the bias of the replicates is an estimate of that of the value, which is taken off; the interval
    is Student's around the rest.
    """
    from scipy import special

    of_value, of_draws = (special.logit(np.clip(each, _LEAST_SHARE, 1 - _LEAST_SHARE)) for each in (value, draws))
    middle = 2 * of_value - of_draws.mean()
    half = float(-special.stdtrit(freedom, (1 - level) / 2)) * of_draws.std(ddof=1)
    return Interval(float(special.expit(middle - half)), float(special.expit(middle + half)))


def auroc(insiders: Floats, outsiders: Floats) -> float:
    """The probability that an outsider has a higher score than an insider; ties count one half."""
    low, high = _both(insiders, outsiders)
    return float(_placements(low, high).mean())


def auroc_interval(insiders: Floats, outsiders: Floats, level: float = 0.95) -> Interval:
    """DeLong's interval of the AUROC, on the scale of log-odds, which keeps it between 0 and 1.

    See DeLong, DeLong and Clarke-Pearson, "Comparing the areas under two or more correlated receiver operating characteristic
    curves" (1988). If the scores are separated it is the exact interval of a share, for the smaller of the two samples; if all
    are the same, the share of ties is bounded likewise.
    """
    from scipy.special import ndtri

    low, high = _both(insiders, outsiders)
    of_high, of_low = _placements(low, high), 1 - _placements(high, low)
    value = float(of_high.mean())
    small = min(len(low), len(high))
    if value in (0.0, 1.0) or small < 2:
        return clopper_pearson(round(value * small), small, level)
    if len(np.unique(np.concatenate((low, high)))) == 1:
        apart = 1 - clopper_pearson(small, small, level).low
        return Interval(0.5 - apart / 2, 0.5 + apart / 2)
    error = math.sqrt(of_high.var(ddof=1) / len(high) + of_low.var(ddof=1) / len(low)) / (value * (1 - value))
    middle, half = math.log(value / (1 - value)), float(ndtri((1 + level) / 2)) * error
    return Interval(*(1 / (1 + math.exp(-(middle + side))) for side in (-half, half)))


def average_precision(insiders: Floats, outsiders: Floats) -> float:
    """The average precision of finding outsiders by a high score."""
    low, high = _both(insiders, outsiders)
    values = np.unique(np.concatenate((low, high)))[::-1]
    hits = len(high) - np.searchsorted(np.sort(high), values)
    alarms = hits + len(low) - np.searchsorted(np.sort(low), values)
    recall = hits / len(high)
    return float((np.diff(recall, prepend=0.0) * hits / alarms).sum())


def _least_average_precision(insiders: int, outsiders: int, level: float) -> float:
    r"""A lower bound of the average precision, if all outsiders were found above all insiders.

    With the bounds of Clopper and Pearson, a share of at least $r$ of the outsiders lies above the lowest one that was found,
    and at most $a$ of the insiders. At worst these lie above all outsiders, and the precision at a recall of $t$ is
    $t / (t + c)$, $c$ being $a$ times the ratio of insiders to outsiders; its integral up to $r$ is the bound.
    """
    certainty = (3 + level) / 4  # each of the two bounds misses in half of the lower tail
    alarms, recall = upper_bound(0, insiders, certainty), lower_bound(outsiders, outsiders, certainty)
    ratio = alarms * insiders / outsiders
    return recall - ratio * math.log1p(recall / ratio)


def _average_precision_of_ties(insiders: int, outsiders: int, level: float) -> Interval:
    r"""The interval of the average precision, if all scores are the same.

    By the bounds of Clopper and Pearson, at most a share of $q$ of the outsiders and $a$ of the insiders have other scores.
    With $n$ insiders and $m$ outsiders, at best these outsiders lie above the tie and these insiders below it. At worst these
    outsiders lie below all others, which leaves the precision at least where it is at a recall of $1 - q$.
    """
    certainty = (3 + level) / 4  # as above
    apart, alarms = upper_bound(0, outsiders, certainty), upper_bound(0, insiders, certainty)
    tied = (1 - apart) * outsiders
    high = apart + (1 - apart) * outsiders / (outsiders + (1 - alarms) * insiders)
    return Interval(tied / (tied + insiders), high)


def fpr_at_tpr(insiders: Floats, outsiders: Floats, tpr: float = 0.95) -> float:
    """The share of outsiders that pass at the lowest threshold at which this share of insiders passes."""
    low, high = _both(insiders, outsiders)
    threshold = np.sort(low)[math.ceil(tpr * len(low) - 1e-9) - 1]
    return float((high <= threshold).mean())


def detection_probability(insiders: Floats, outsiders: Floats) -> float:
    r"""How often the best detector that sees only the score is right, half of the inputs being outsiders: $(1 + TV)/2$.

    $TV$ is the total variation between the scores' distributions (Huang, Park and Simeone, 2024,
    https://arxiv.org/abs/2404.11350). Histograms overestimate it: in every bin chance makes one of them larger. Here the best
    threshold or pair of thresholds is learned on four fifths of the examples and judged on the rest, in turn: without a
    difference this is 0.5 on average. Distributions that cross more than twice have a larger $TV$ than it finds.
    """
    return float(np.mean([part.mean() for part in _detected(*_both(insiders, outsiders))]))


def detection_probability_interval(insiders: Floats, outsiders: Floats, level: float = 0.95) -> Interval:
    """The interval of `detection_probability`: a normal one, up to what the best thresholds of all examples reach.

    Those are optimistic, having been chosen on the examples that judge them.
    """
    from scipy.special import ndtri

    low, high = _both(insiders, outsiders)
    # Half a hit and half a miss more keep the interval from shrinking to a point.
    shares = [((part.sum() + 0.5) / (len(part) + 1), len(part)) for part in _detected(low, high)]
    middle = float(np.mean([share for share, _ in shares]))
    half = float(ndtri((1 + level) / 2)) * math.sqrt(sum(share * (1 - share) / (4 * n) for share, n in shares))
    start, end, outside = _best_interval(low, high)
    inside_interval = [float(((part > start) & (part <= end)).mean()) for part in (low, high)]
    most = 0.5 * (1 + (1 if outside else -1) * (inside_interval[1] - inside_interval[0]))
    return Interval(min(max(0.5, middle - half), most), min(1.0, max(middle + half, most)))


def _detected(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """For each insider and each outsider 1 if a detector learned on others is right about it, else 0."""
    folds = min(_FOLDS, len(low), len(high))
    if folds < 2:
        raise InvalidArgumentError(
            f"Expected at least two insiders and two outsiders, but got {len(low)} and {len(high)}: "
            "some learn, the others judge."
        )
    right = np.empty(len(low)), np.empty(len(high))
    for fold in range(folds):
        judges = [np.arange(len(part)) % folds == fold for part in (low, high)]
        start, end, outside = _best_interval(low[~judges[0]], high[~judges[1]])
        for part, judge, scores, true in zip(right, judges, (low, high), (False, True), strict=True):
            alarm = ((scores[judge] > start) & (scores[judge] <= end)) == outside
            part[judge] = alarm == true
    return right


def _best_interval(low: Floats, high: Floats) -> tuple[float, float, bool]:
    """The interval that best tells outsiders from insiders, and whether it is the outsiders that lie in it."""
    values = np.unique(np.concatenate((low, high)))
    excess = _shares_up_to(high, values) - _shares_up_to(low, values)
    # From its lowest to its highest point, the excess of outsiders grows the most; a fall is one of insiders.
    excess, edges = np.append(0.0, excess), np.concatenate(([-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]))
    lowest, highest = int(excess.argmin()), int(excess.argmax())
    return float(edges[min(lowest, highest)]), float(edges[max(lowest, highest)]), lowest < highest


def _shares_up_to(part: Floats, values: Floats) -> Floats:
    shares: Floats = np.searchsorted(np.sort(part), values, side="right") / len(part)
    return shares


def _placements(low: Floats, high: Floats) -> Floats:
    """For each of ``high`` the share of ``low`` below it, ties counting one half."""
    ordered = np.sort(low)
    below, upto = (np.searchsorted(ordered, high, side=side) for side in ("left", "right"))
    return (below + upto) / (2 * len(low))


def _both(insiders: Floats, outsiders: Floats) -> tuple[Floats, Floats]:
    low, high = np.asarray(insiders, dtype=np.float64), np.asarray(outsiders, dtype=np.float64)
    if low.ndim != 1 or high.ndim != 1 or not len(low) or not len(high):
        raise InvalidArgumentError(f"Expected one score per example, but got shapes {list(low.shape)} and {list(high.shape)}.")
    return low, high
