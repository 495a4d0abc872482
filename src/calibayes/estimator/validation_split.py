"""The split into training and validation examples, where the same inputs may occur many times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from calibayes.errors import InvalidArgumentError
from calibayes.randomness import derived_seed

__all__ = ["held_out"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_MANY = 10
_MOST = 10**8  # rows of a class; beyond it NumPy cannot draw, and the numbers need not be random


def held_out(x: npt.NDArray[np.floating], y: Indices, counts: Floats, fraction: float, seed: int) -> Floats:
    """Return how many of each example's ``counts`` are for validation: about ``fraction`` of each class, and never all of it.

    Rows with the same inputs may be copies, and stay together, so that validation inputs are new. But many rows with the same
    inputs and several classes are not copies. Their rows are drawn one by one, since with each of their classes on one side
    only, validation would ask for the opposite of what training has seen.

    Args:
        x: inputs of the examples, which differ in inputs or class.
        y: their classes.
        counts: how many times each occurs.
        fraction: the share to hold out.
        seed: of the draw.

    Examples:
        >>> x, y = np.array([[0.0], [0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1, 1])
        >>> held_out(x, y, np.array([50.0, 100.0, 1.0, 1.0, 1.0]), 0.2, seed=0).tolist()
        [10.0, 20.0, 0.0, 0.0, 0.0]
    """
    group = np.unique(x, axis=0, return_inverse=True)[1].reshape(-1)
    several = np.bincount(group, y != y[np.unique(group, return_index=True)[1]][group]) > 0
    for many in (_MANY, 1):
        draws = np.random.Generator(np.random.PCG64(derived_seed(seed, "validation")))
        drawn = _drawn(group, several & (np.bincount(group, counts) >= many), y, counts, fraction, draws)
        if drawn.any():
            return drawn
    raise InvalidArgumentError(
        f"There is nothing to hold out for validation: each of the {int(y.max()) + 1} classes has 1 sample (copies do not "
        "count). Give `lam` and `beta` as numbers and `early_stopping=False`, or more samples."
    )


def _drawn(
    group: Indices, parted: npt.NDArray[np.bool_], y: Indices, counts: Floats, fraction: float, draws: np.random.Generator
) -> Floats:
    """Return how many of each example are held out, with the rows of ``parted`` groups drawn one by one."""
    classes = range(int(y.max()) + 1)
    order = np.lexsort((-counts, group))
    leading = y[order[np.unique(group[order], return_index=True)[1]]]  # the most frequent class of each group
    wholes = [draws.permutation(np.flatnonzero((leading == k) & ~parted)) for k in classes]
    cells = [np.flatnonzero((y == k) & parted[group]) for k in classes]
    rows = [np.floor(counts[index]) for index in cells]
    sizes = [_size(fraction, len(index)) for index in wholes]
    numbers = [_size(fraction, float(each.sum())) for each in rows]
    if not any(sizes) and not any(numbers):
        _take_one(sizes, [len(index) for index in wholes])
        if not any(sizes):
            _take_one(numbers, [float(each.sum()) for each in rows])
    held = np.zeros(len(y))
    for k in classes:
        chosen = np.isin(group, wholes[k][: sizes[k]])
        held[chosen] = counts[chosen]
        if numbers[k]:
            few = rows[k].sum() < _MOST
            held[cells[k]] = (
                draws.multivariate_hypergeometric(rows[k].astype(np.int64), numbers[k]) if few else np.floor(fraction * rows[k])
            )
    for k in classes:
        if (held[y == k] == counts[y == k]).all():  # other classes' groups had all of it
            held[group == group[np.flatnonzero(y == k)[0]]] = 0
    return held


def _size(fraction: float, many: float) -> int:
    return max(0, min(round(fraction * many), int(many) - 1))


def _take_one(sizes: list[int], of: Sequence[float]) -> None:
    """One of the largest class, if that leaves some of it."""
    largest = int(np.argmax(of))
    sizes[largest] = int(of[largest] >= 2)
