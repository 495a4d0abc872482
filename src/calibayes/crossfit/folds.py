"""Folds of the rows of a data set: every class in each, rows that belong together in one, later rows after earlier ones."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibayes.errors import DataError, InvalidArgumentError

__all__ = ["Fold", "are_copies", "copies_of_rows", "forward_folds", "stratified_folds"]

Ints = npt.NDArray[np.int64]

_MANY_PATTERNS = 100  # different rows: with fewer, to hold some of them out would be to ask for what was never seen


class Fold(NamedTuple):
    """The rows that train one member, and those that it is scored on."""

    train: Ints
    held_out: Ints


def stratified_folds(labels: Ints, folds: int, *, seed: int, groups: Ints | None = None) -> list[Fold]:
    """Deal rows into folds so that each has nearly the same share of every class.

    Args:
        labels: the class of each row.
        folds: how many, at least 2.
        seed: of the shuffle.
        groups: a number for each row; rows with the same number stay in one fold.

    Examples:
        >>> found = stratified_folds(np.array([0, 0, 0, 1, 1, 1]), 3, seed=0)
        >>> sorted(np.concatenate([fold.held_out for fold in found]).tolist()), [len(fold.train) for fold in found]
        ([0, 1, 2, 3, 4, 5], [4, 4, 4])
    """
    _check_count(folds, len(labels))
    rng = np.random.default_rng(seed)
    classes, codes = np.unique(labels, return_inverse=True)
    counts = np.zeros((folds, len(classes)), dtype=np.int64)  # rows of each class in each fold so far
    fold_of = np.full(len(labels), -1, dtype=np.int64)
    for rows in _groups_of_several(groups, rng):
        own = np.bincount(codes[rows], minlength=len(classes))
        common = int(own.argmax())
        best = int(np.lexsort((counts.sum(1), counts[:, common]))[0])
        fold_of[rows] = best
        counts[best] += own
    for place in range(len(classes)):
        rows = rng.permutation(np.flatnonzero((codes == place) & (fold_of < 0)))
        fold_of[rows] = _levelled(counts[:, place], len(rows), counts.sum(1))
        counts[:, place] += np.bincount(fold_of[rows], minlength=folds)
    missing = np.flatnonzero(((counts > 0).sum(0) < 2) & (counts.sum(0) > 0))
    if len(missing):
        raise DataError(
            f"All rows of class {classes[missing[0]]} are copies of one another or belong to one group, so no fold can be held "
            "out. Add rows of this class, or leave it out."
        )
    return [Fold(np.flatnonzero(fold_of != each), np.flatnonzero(fold_of == each)) for each in range(folds)]


def forward_folds(labels: Ints, folds: int, *, time: npt.NDArray[np.float64]) -> list[Fold]:
    """Cut rows into blocks by their time; each member trains on all blocks before the one that it is scored on.

    Rows of the same time stay together. The first block, which no member is scored on, ends where every class has occurred.

    Args:
        labels: the class of each row.
        folds: how many blocks are scored.
        time: of each row.

    Examples:
        >>> found = forward_folds(np.array([0, 1, 0, 1, 0, 1]), 2, time=np.arange(6.0))
        >>> [(fold.train.tolist(), fold.held_out.tolist()) for fold in found]
        [([0, 1], [2, 3]), ([0, 1, 2, 3], [4, 5])]
    """
    _check_count(folds, len(labels))
    order = np.argsort(time, kind="stable")
    first_seen = {int(label): int(np.argmax(labels[order] == label)) for label in np.unique(labels)}
    start = max(len(labels) // (folds + 1), 1 + max(first_seen.values()))
    cuts = _between_times(time[order], np.linspace(start, len(labels), folds + 1).round().astype(np.int64))
    if len(cuts) < 3:
        late = max(first_seen, key=lambda label: first_seen[label])
        raise DataError(
            f"Rows cannot be cut into {folds} blocks by time: class {late} first occurs in row {first_seen[late] + 1:,} of "
            f"{len(labels):,} in the order of time, or most rows have the same time. Leave the time out, or use fewer folds."
        )
    return [Fold(np.sort(order[:begin]), np.sort(order[begin:end])) for begin, end in pairwise(cuts.tolist())]


def are_copies(keys: Ints, labels: Ints) -> bool:
    """Return True if rows with the same inputs are copies, rather than in the nature of the data.

    With columns of a few values each, many rows are equal by nature. Rows are copies if at least half of them are different, or
    if there are many different ones and all that are equal have the same class.

    Args:
        keys: of the rows, from `copies_of_rows`.
        labels: the class of each row.

    Examples:
        >>> throws = np.arange(600) % 6
        >>> are_copies(throws, throws // 3), are_copies(np.arange(600) % 200, np.arange(600) % 2)
        (False, True)
    """
    different = len(np.unique(keys))
    if 2 * different >= len(keys):
        return True
    return different >= _MANY_PATTERNS and len(np.unique(np.column_stack([keys, labels]), axis=0)) == different


def copies_of_rows(inputs: npt.NDArray[np.generic]) -> Ints:
    """Return a number for each row; rows with the same values have the same number.

    Rows are told apart by 64-bit hashes, so a million rows take a fraction of a second.

    Examples:
        >>> found = copies_of_rows(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
        >>> bool(found[0] == found[2]), bool(found[0] == found[1])
        (True, False)
    """
    rows = np.ascontiguousarray(inputs).reshape(len(inputs), -1)
    words = rows.view(np.uint8).reshape(len(rows), -1)
    if words.shape[1] % 4 == 0:
        words = words.view(np.uint32)
    factors = np.random.default_rng(0).integers(1, 2**63, words.shape[1], dtype=np.uint64) | np.uint64(1)
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column, factor in enumerate(factors):
        mixed = (words[:, column].astype(np.uint64) + factor) * factor
        hashes += (mixed ^ (mixed >> np.uint64(29))) * factor
    return np.unique(hashes, return_inverse=True)[1].astype(np.int64)


def _check_count(folds: int, rows: int) -> None:
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= rows:
        raise InvalidArgumentError(f"Expected the number of folds to be from 2 to the {rows:,} rows, but got {folds!r}.")


def _groups_of_several(groups: Ints | None, rng: np.random.Generator) -> list[Ints]:
    """Return the rows of each group that has several, the largest first, equals in random order."""
    if groups is None:
        return []
    order = np.argsort(groups, kind="stable")
    _, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    several = rng.permutation(np.flatnonzero(sizes > 1))
    several = several[np.argsort(-sizes[several], kind="stable")]
    return [order[starts[each] : starts[each] + sizes[each]] for each in several]


def _levelled(counts: Ints, rows: int, totals: Ints) -> Ints:
    """Return the fold of each of some rows of a class, so that the folds come out as level as they can."""
    folds = len(counts)
    heights = counts[:, None] + np.arange(rows)  # what a fold has before it takes its next row
    turns = np.lexsort((np.repeat(totals, rows), heights.ravel()))[:rows]
    found: Ints = np.repeat(np.arange(folds), rows)[turns]
    return found


def _between_times(times: npt.NDArray[np.float64], cuts: Ints) -> Ints:
    """Move cuts forward to where the time changes; those that fall together become one."""
    moved = [int(np.searchsorted(times, times[cut - 1], side="right")) for cut in cuts]
    return np.unique(np.array(moved, dtype=np.int64))
