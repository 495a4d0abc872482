"""The rows that a cross-fitted classifier trains on: in an order of their own, each as often as it counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv

from calibayes.checks import integer
from calibayes.crossfit import Fold, are_copies, copies_of_rows, stratified_folds
from calibayes.errors import InvalidArgumentError

__all__ = ["TrainingRows", "folds_of", "row_keys", "training_rows"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_COPIES = 10  # times the rows: beyond it, whole weights are weights rather than copies


class TrainingRows(NamedTuple):
    """Rows to train on.

    Attributes:
        source: the number of each among the rows that were given; a row that counts twice is there twice.
        keys: a number for each, the same for rows with the same values.
        labels: class indices.
        weights: how much each counts; ``None`` if all count the same.
        groups: a number for each; rows with the same number belong together.
    """

    source: Ints
    keys: Ints
    labels: Ints
    weights: Floats | None
    groups: Ints | None


def training_rows(keys: Ints, labels: Ints, weights: Floats, class_weights: Floats, groups: Ints | None) -> TrainingRows:
    """Return the rows, sorted by what is in them, each as often as its whole weight says; zero is no row.

    So a weight of 2 is exactly a row twice, and the order of the rows does not matter. Weights that are not whole numbers are
    passed on to the methods.

    Args:
        keys: of the rows, from `copies_of_rows`.
        labels: class indices.
        weights: how many times each row counts.
        class_weights: further factors of the classes.
        groups: of the rows.
    """
    whole = bool((weights == np.round(weights)).all()) and weights.sum() <= _MOST_COPIES * len(weights)
    counts = weights.astype(np.int64) if whole else (weights > 0).astype(np.int64)
    source = np.repeat(np.arange(len(labels)), counts)
    order = np.lexsort(([] if groups is None else [groups[source]]) + [labels[source], keys[source]])
    source = source[order]
    shares = class_weights[labels[source]] * (1.0 if whole else weights[source])
    same = bool((shares == shares[0]).all())
    scaled = None if same else shares / shares.mean()
    return TrainingRows(source, keys[source], labels[source], scaled, None if groups is None else groups[source])


def folds_of(cv: Any, rows: TrainingRows, x: Any, y: npt.NDArray[Any], groups: Any, seed: int) -> list[Fold]:
    """Return the folds of training rows.

    Args:
        cv: how many, a scikit-learn splitter, or an iterable of pairs of row numbers (to train on, to hold out).
        rows: those to train on.
        x: the rows as they were given.
        y: their classes.
        groups: theirs, for a splitter.
        seed: of the shuffle.
    """
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        return _stratified(integer("cv", int(cv), least=2), rows, y, seed)
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise InvalidArgumentError(
            f"Expected `cv` to be a number of folds, a splitter of scikit-learn, pairs of row numbers, or None, but got {cv!r}."
        )
    folds = []
    for train, held_out in check_cv(cv, y, classifier=True).split(x, y, groups):
        parts = (np.isin(rows.source, np.arange(len(y))[part]) for part in (train, held_out))
        fold = Fold(*(np.flatnonzero(part) for part in parts))
        if not len(fold.train) or not len(fold.held_out):
            raise InvalidArgumentError(
                "Expected each fold of `cv` to train on some rows and hold out others, but one is empty."
            )
        folds.append(fold)
    return folds


def _stratified(cv: int, rows: TrainingRows, y: npt.NDArray[Any], seed: int) -> list[Fold]:
    groups = rows.groups
    if groups is None and are_copies(rows.keys, rows.labels):
        groups = rows.keys
    kept = _never_held_out(rows.labels, np.arange(len(rows.labels)) if groups is None else groups)
    others = np.flatnonzero(~kept)
    if len(others) < 2:
        raise InvalidArgumentError(
            f"Expected several rows of some class to cross-fit, but each of the {rows.labels.max() + 1} classes has 1 sample "
            "(copies and groups count as one). Add rows, or train once on all rows, with `cv=None`."
        )
    cut = stratified_folds(
        rows.labels[others], min(cv, len(others)), seed=seed, groups=None if groups is None else groups[others]
    )
    return [Fold(np.setdiff1d(np.arange(len(kept)), others[fold.held_out]), others[fold.held_out]) for fold in cut]


def _never_held_out(labels: Ints, groups: Ints) -> npt.NDArray[np.bool_]:
    """Mark the groups that have all rows of some class: every member must train on them."""
    pairs = np.unique(np.stack([labels, groups]), axis=1)
    lone = np.flatnonzero(np.bincount(pairs[0]) == 1)
    marked: npt.NDArray[np.bool_] = np.isin(groups, pairs[1][np.isin(pairs[0], lone)])
    return marked


def row_keys(rows: Any) -> Ints:
    """Return a number for each row, in the order of hashes, which do not depend on where a row is."""
    if not hasattr(rows, "tocsr"):
        return copies_of_rows(rows)
    csr = rows.tocsr()
    draws = np.random.default_rng(0)
    factors = draws.normal(size=(csr.shape[1], 2))
    sums = np.ascontiguousarray(csr @ factors)
    return copies_of_rows(sums)
