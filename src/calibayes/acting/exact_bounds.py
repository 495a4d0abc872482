r"""Exact bounds of a share, from a number of successes in independent trials.

Clopper and Pearson's bounds hold with at least the stated probability for every number of trials: an end is the share under
which as many successes, or as few, would be improbable. See "The use of confidence or fiducial limits illustrated in the case
of the binomial" (1934, https://doi.org/10.1093/biomet/26.4.404).
"""

from __future__ import annotations

import math

from calibayes.checks import fraction
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.intervals import Interval

__all__ = ["clopper_pearson", "error_free_rows", "lower_bound", "upper_bound"]


def upper_bound(successes: int, trials: int, certainty: float) -> float:
    """The share that is not exceeded, with this certainty.

    Examples:
        >>> round(upper_bound(0, 45, 0.9), 4)
        0.0499
    """
    from scipy.special import betaincinv

    return 1.0 if successes >= trials else float(betaincinv(successes + 1, trials - successes, certainty))


def lower_bound(successes: int, trials: int, certainty: float) -> float:
    """The share that is reached, with this certainty.

    Examples:
        >>> round(lower_bound(45, 45, 0.9), 4)
        0.9501
    """
    return 1 - upper_bound(trials - successes, trials, certainty)


def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Clopper and Pearson's interval of a share; from 0 to 1 without a trial.

    Examples:
        >>> [round(end, 3) for end in clopper_pearson(9, 10, 0.95)]
        [0.555, 0.997]
    """
    if not 0 <= successes <= trials:
        raise InvalidArgumentError(f"Expected between 0 and {trials} successes in {trials} trials, but got {successes}.")
    certainty = (1 + fraction("level", level)) / 2
    return Interval(lower_bound(successes, trials, certainty) if trials else 0.0, upper_bound(successes, trials, certainty))


def error_free_rows(accuracy: float, certainty: float) -> int:
    """The number of rows without an error that show an accuracy with this certainty.

    Examples:
        >>> error_free_rows(0.95, 0.9)
        45
    """
    return max(1, math.ceil(math.log(1 - certainty) / math.log(accuracy) - 1e-9))
