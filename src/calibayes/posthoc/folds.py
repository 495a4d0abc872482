"""Folds for cross-fitting: copies of a row stay together, and the order of the rows does not matter."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import _num_samples

from calibayes.errors import InvalidArgumentError

__all__ = ["Fold", "Indices", "Round", "complete_rounds", "indexable_rows", "row_keys", "stratified_folds"]

Indices: TypeAlias = npt.NDArray[np.intp]
Fold: TypeAlias = tuple[Indices, Indices]  # rows to train on, rows held out


@dataclass(frozen=True, eq=False)
class Round:
    """Folds that do not overlap.

    Attributes:
        numbers: of the folds, in the order in which they came.
        rows: all that they hold out.
    """

    numbers: list[int]
    rows: Indices


def indexable_rows(x: Any) -> Any:
    """Rows that can be chosen by number; the classifier checks what is in them."""
    if hasattr(x, "tocsr"):
        return x.tocsr()
    rows = x if hasattr(x, "iloc") or isinstance(x, list) else np.asarray(x)
    if _num_samples(rows) < 1:
        raise InvalidArgumentError("Expected rows to train on, but got 0 sample(s), and a minimum of 1 is required.")
    if getattr(rows, "shape", ())[1:2] == (0,):
        raise InvalidArgumentError(
            f"Expected columns, but got 0 feature(s) (shape={rows.shape}) while a minimum of 1 is required."
        )
    return rows


def row_keys(x: Any) -> npt.NDArray[np.uint64]:
    """A number for each row, the same for rows with the same content: of a data frame, a sparse matrix, an array, a list."""
    array = x if sparse.issparse(x) else np.asarray(x)
    numbers = array.dtype.kind in "biuf"
    if hasattr(x, "iloc") and not numbers:
        from pandas.util import hash_pandas_object

        return np.asarray(hash_pandas_object(x, index=False), dtype=np.uint64)
    if sparse.issparse(x):
        rows = x.tocsr().copy()
        rows.sum_duplicates()
        cuts = rows.indptr
        contents: Iterable[bytes] = (rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in pairwise(cuts))
    else:
        rows = array.astype(np.float64, order="C") if numbers else array
        contents = (row.tobytes() if numbers else repr(np.asarray(row).tolist()).encode() for row in rows)
    digests = (hashlib.blake2b(content, digest_size=8).digest() for content in contents)
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def stratified_folds(
    keys: npt.NDArray[Any],
    labels: Indices,
    number: int,
    generator: np.random.Generator,
    weights: npt.NDArray[np.float64] | None = None,
) -> list[Fold]:
    """Folds with about the same share of each class, in which rows with the same key are never parted.

    Args:
        keys: of the rows: `row_keys`, or their groups.
        labels: class indices of the rows.
        number: of folds.
        generator: draws them.
        weights: how many times each row counts.

    Examples:
        >>> folds = stratified_folds(np.array([7, 8, 9, 7]), np.array([0, 0, 0, 0]), 3, np.random.default_rng(0))
        >>> sorted(held_out.tolist() for _, held_out in folds)
        [[0, 3], [1], [2]]
    """
    distinct, key_of_row = np.unique(keys, return_inverse=True)
    if len(distinct) < number:
        raise InvalidArgumentError(
            f"Expected at least {number} different rows or groups for {number} folds, but got {len(distinct)}. "
            "Use a smaller `cv`."
        )
    counts = np.zeros((len(distinct), int(labels.max()) + 1))
    np.add.at(counts, (key_of_row, labels), 1.0 if weights is None else weights)
    # Shuffled, class by class, the largest first: each goes where it fits best.
    order = generator.permutation(len(distinct))
    order = order[np.lexsort((-counts.sum(1)[order], counts.argmax(1)[order]))]
    filled = np.zeros((number, counts.shape[1]))
    fold_of_key = np.empty(len(distinct), dtype=np.intp)
    for key in order:
        leading = counts[key].argmax()
        # The fewest rows of its class, then the fewest of all, then the first.
        fold = np.lexsort((filled.sum(1), filled[:, leading]))[0]
        fold_of_key[key] = fold
        filled[fold] += counts[key]
    fold_of_row = fold_of_key[key_of_row]
    return [(np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)) for fold in range(number)]


def complete_rounds(folds: list[Fold]) -> list[Round]:
    """The folds of any splitter as rounds in which no row is held out twice."""
    rounds: list[Round] = []
    for number, (_, held_out) in enumerate(folds):
        if not rounds or np.isin(held_out, rounds[-1].rows).any():
            rounds.append(Round([], np.empty(0, dtype=np.intp)))
        last = rounds[-1]
        rounds[-1] = Round([*last.numbers, number], np.sort(np.concatenate([last.rows, held_out])))
    return rounds
