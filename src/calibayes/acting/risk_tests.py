r"""Tests that a mean loss is below a limit, and the walk over thresholds that keeps all of them honest together.

**The walk.** A threshold is certified if the test of "the mean loss above it exceeds the limit" rejects. Looking at many
thresholds and keeping the best would certify by luck, so they are tested in a fixed order, from high to low, and the budget
$\delta$ is handed on. It starts, in equal parts, at up to three places: the most confident 1/3, 1/10 and 1/30 of the rows, as
far as these are enough to certify anything. A rejection hands all that it was tested with to the next lower threshold, and a
failure loses it. This is Wiens' fallback procedure ("A fixed sequence Bonferroni procedure", 2003), with fixed-sequence
testing between the starts, in the spirit of Angelopoulos et al., "Learn then Test" (2021, https://arxiv.org/abs/2110.01052).
In simulations it certified more than a correction for the number of thresholds, and than a sequence that starts where
error-free rows suffice: there one early error ends everything.

**Why it holds.** The order is that of *counts* of rows, fixed in advance. Given the value of the $(k+1)$-th largest
confidence, the rows above it are independent draws from all that lies above it, so each test is exact, also with ties. The
budget handed on is spent honestly if the loss above a threshold, once it exceeds the limit, does so for all lower thresholds:
which test is the first that must not reject then depends only on the number of rows above that point, and given this number,
the rows above have a mean loss of the limit, and those below it a higher one. (If many rows tie at that point, those below must
have a mean loss above the limit too.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Certified", "betting_p_value", "binomial_p_value", "first_tests", "tolerated_errors", "walk_down"]

Floats = npt.NDArray[np.float64]

_STARTS = (1 / 3, 1 / 10, 1 / 30)
_STEPS = 200


class Certified(NamedTuple):
    """A threshold that was certified: scores above it are answered."""

    threshold: float
    answered: int


def binomial_p_value(errors: int, rows: int, limit: float) -> float:
    """The probability of so few errors, or fewer, if the error rate were the limit: an exact test.

    Examples:
        >>> round(binomial_p_value(0, 45, 0.05), 4)
        0.0994
    """
    from scipy.special import bdtr

    return float(bdtr(errors, rows, limit)) if rows else 1.0


def betting_p_value(losses: Floats, limit: float, budget: float) -> float:
    r"""The p-value of "the mean of losses in 0 … 1 is at least the limit", by betting against it.

    Capital grows by $1 - \nu_i (x_i - m)$ with a stake $\nu_i$ that depends on earlier losses only. If the mean is at least
    $m$, the capital is a supermartingale and exceeds $1/p$ with a probability of at most $p$. See Waudby-Smith and Ramdas,
    "Estimating means of bounded random variables by betting" (2024, https://arxiv.org/abs/2010.09686). In simulations it beat
    the bound of Hoeffding and Bentkus wherever losses take more than two values.

    Examples:
        >>> betting_p_value(np.zeros(300), 0.05, 0.1) < 0.01 < betting_p_value(np.full(300, 0.05), 0.05, 0.1)
        True
    """
    n = len(losses)
    if not n:
        return 1.0
    seen = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(losses)) / (seen + 1)
    variance = (0.25 + np.cumsum((losses - mean) ** 2)) / (seen + 1)
    before = np.concatenate(([0.25], variance[:-1]))
    stake = np.minimum(1.0, np.sqrt(2 * math.log(1 / budget) / (n * before)))
    capital = np.cumsum(np.log1p(-stake * (losses - limit)))
    return math.exp(-max(0.0, float(capital.max())))


def tolerated_errors(rows: int, limit: float, budget: float) -> int:
    """The largest number of errors in so many rows that still certifies; -1 if even none does not.

    Examples:
        >>> tolerated_errors(44, 0.05, 0.1), tolerated_errors(45, 0.05, 0.1), tolerated_errors(200, 0.05, 0.1)
        (-1, 0, 5)
    """
    from scipy.special import bdtr

    most = math.ceil(limit * rows) + 1
    passed = np.asarray(bdtr(np.arange(most), rows, limit)) <= budget
    return int(passed.sum()) - 1


def first_tests(rows: int, least: Callable[[float], int], limit: float, budget: float) -> list[tuple[int, int]]:
    """Return where the walk starts: at how many of the highest scores, and how many errors each start tolerates among them.

    If no threshold is certified, every one of them had more errors, unless scores tied. Arguments as for `walk_down`.

    Examples:
        >>> from calibayes.acting.exact_bounds import error_free_rows
        >>> first_tests(300, lambda part: error_free_rows(0.95, 1 - part), 0.05, 0.1)
        [(77, 1)]
    """
    return [(count, tolerated_errors(count, limit, own)) for count, own in _sequence(rows, least, limit, budget) if own > 0]


def walk_down(
    scores: Floats, p_value: Callable[[float, int, float], float], least: Callable[[float], int], limit: float, budget: float
) -> Certified | None:
    """Find the lowest threshold that the walk certifies, or ``None``.

    Args:
        scores: higher is answered first; non-negative, and a score of 0 is never answered.
        p_value: of a threshold, the number of rows above it, and the budget.
        least: the smallest number of rows that can certify anything with a budget.
        limit: of the mean loss, by which the starts are placed where they tolerate the most errors for their size.
        budget: the probability of certifying what should not be.
    """
    ordered = np.sort(scores)[::-1]
    best, carried, last = None, 0.0, math.inf
    for count, own in _sequence(len(scores), least, limit, budget):
        threshold = max(float(ordered[count]), 0.0) if count < len(scores) else 0.0
        if threshold == last and own == 0.0:
            continue  # tied: the same test as before
        last = threshold
        carried += own
        answered = int(np.searchsorted(-ordered, -threshold))
        if carried == 0 or answered < least(carried):
            continue  # with ties, fewer rows may lie above a threshold than were counted: there is nothing to test yet
        if p_value(threshold, answered, carried) <= carried:
            best = Certified(threshold, answered)
        else:
            carried = 0.0
    return best


def _sequence(n: int, least: Callable[[float], int], limit: float, budget: float) -> list[tuple[int, float]]:
    """The numbers of rows to test, ascending, and the part of the budget that starts at each; both depend on ``n`` only."""
    # A start gets a part of the budget if it can stand an error or so with what is left of it.
    fitting = [part * n >= 1.5 * least(budget / (1 + index)) for index, part in enumerate(_STARTS)]
    starts = [part * n for part in _STARTS[: (*fitting, False).index(False)]]
    share = budget / max(1, len(starts))
    counts = {_placed(start, limit, share) for start in starts} or {min(max(least(budget), _placed(n / 3, limit, budget)), n)}
    between = np.linspace(min(counts), n, _STEPS).round().astype(int).tolist()
    return [(count, budget / len(counts) if count in counts else 0.0) for count in sorted({*counts, *between})]


def _placed(rows: float, limit: float, budget: float) -> int:
    """The smallest number of rows that tolerates as many errors as this one."""
    high = int(rows)
    errors, low = tolerated_errors(high, limit, budget), 0
    while high - low > 1 and errors >= 0:
        middle = (low + high) // 2
        low, high = (low, middle) if tolerated_errors(middle, limit, budget) >= errors else (middle, high)
    return high
