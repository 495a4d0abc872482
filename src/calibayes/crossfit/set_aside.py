"""Set rows aside that have no part in training, so that what is calibrated on them carries a guarantee."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from calibayes.crossfit.folds import stratified_folds
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.randomness import derived_seed

__all__ = ["MOST_SET_ASIDE", "check_share", "rows_to_set_aside"]

Ints = npt.NDArray[np.int64]

MOST_SET_ASIDE = 20_000
"""Rows beyond which more would say nothing new about a threshold; they train instead."""
_MOST_PARTS = 20


def check_share(share: float) -> float:
    """Return the share of rows to set aside, from 5 % to 50 %; raise `InvalidArgumentError` if it is not."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.05 <= share <= 0.5:
        raise InvalidArgumentError(
            f"Expected `set_aside` to be a share of the rows from 0.05 to 0.5, such as 0.2, but got {share!r}."
        )
    return float(share)


def rows_to_set_aside(labels: Ints, share: float, *, seed: int, groups: Ints | None = None, most: int = MOST_SET_ASIDE) -> Ints:
    """Draw rows to set aside, with nearly the same share of every class.

    Of a class that would be left with rows of fewer than two groups to train on, none are set aside.

    Args:
        labels: the class of each row.
        share: of the rows; that of a class is rounded.
        seed: of the draw.
        groups: a number for each row; rows with the same number are never on both sides.
        most: how many rows at most.

    Examples:
        >>> found = rows_to_set_aside(np.arange(100) % 2, 0.2, seed=0)
        >>> len(found), int((found % 2).sum())
        (20, 10)
    """
    units = np.arange(len(labels)) if groups is None else np.unique(groups, return_inverse=True)[1]
    part = Fraction(check_share(share)).limit_denominator(_MOST_PARTS)
    rng = np.random.default_rng(derived_seed(seed, "set aside"))
    folds = stratified_folds(labels, min(part.denominator, len(labels)), seed=int(rng.integers(2**31)), groups=groups)
    # Which of the folds must not depend on their order: the rows of a small class are in the first ones.
    chosen = rng.permutation(len(folds))[: part.numerator]
    aside = np.zeros(len(labels), dtype=bool)
    for each in chosen:
        aside[folds[each].held_out] = True
    order = rng.permutation(np.unique(units[aside]))
    sizes = np.bincount(units[aside], minlength=int(units.max()) + 1)[order]
    aside &= np.isin(units, order[np.cumsum(sizes) <= most])
    for label in np.unique(labels):
        own = labels == label
        if len(np.unique(units[own & ~aside])) < 2:
            aside &= ~np.isin(units, units[own])
    if not aside.any():
        raise DataError(
            "No rows can be set aside: too few would be left to train on. Add rows, or train without setting rows aside."
        )
    return np.flatnonzero(aside)
