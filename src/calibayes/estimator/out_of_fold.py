"""What cross-conformal sets need of a cross-fitted classifier."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibayes.crossfit import ChosenClassifier
from calibayes.estimator.training_rows import TrainingRows

__all__ = ["OutOfFold", "out_of_fold_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class OutOfFold(NamedTuple):
    """Predictions of rows by the members that were trained without them.

    Attributes:
        probs: before any scaling, ``[n, K]``.
        labels: class indices.
        folds: the fold of each row.
        members: for each fold the parts of its classifier, and for each of these the places of its members in the ensemble.
    """

    probs: Floats
    labels: Ints
    folds: Ints
    members: tuple[tuple[tuple[int, ...], ...], ...]


def out_of_fold_of(chosen: ChosenClassifier, rows: TrainingRows) -> OutOfFold | None:
    """Return the predictions that cross-conformal sets need; None if rows have weights, or were held out more than once."""
    best = chosen.selection.best
    trained = len(best.parts[0].members)
    folds = best.parts[0].folds[:trained]
    held_out = np.concatenate([fold.held_out for fold in folds])
    if rows.weights is not None or trained < 2 or len(np.unique(held_out)) < len(held_out):
        return None
    places, start = [], 0
    for part in best.parts:
        sizes = [len(member.members) for member in part.members]
        ends = start + np.cumsum(sizes)
        places.append([tuple(range(end - size, end)) for size, end in zip(sizes, ends.tolist(), strict=True)])
        start = int(ends[-1])
    fold_of = np.concatenate([np.full(len(fold.held_out), place) for place, fold in enumerate(folds)])
    probs = best.predictions()[held_out]
    return OutOfFold(probs, rows.labels[held_out], fold_of, tuple(zip(*places, strict=True)))
