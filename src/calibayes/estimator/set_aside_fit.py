"""Fit a classifier on some of the rows, and keep the predictions of the others, which nothing in training has seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import column_or_1d

from calibayes.crossfit import are_copies, check_share, rows_to_set_aside
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.estimator.class_labels import LARGEST_SEED, class_indices, row_weights
from calibayes.estimator.cross_fitting import inputs_for
from calibayes.estimator.table_columns import as_table, check_inputs
from calibayes.estimator.training_rows import row_keys

__all__ = ["SetAside", "fit_without_some"]

Ints = npt.NDArray[np.int64]


class SetAside(NamedTuple):
    """Predictions of rows that nothing in training has seen.

    Attributes:
        rows: their numbers among the rows that were given.
        probs: the classifier's probabilities ``[n, K]``.
        labels: the class indices.
    """

    rows: Ints
    probs: npt.NDArray[np.float64]
    labels: Ints


def fit_without_some(
    estimator: Any, fit: Callable[[Any, Any, Any, Any], None], x: Any, y: Any, sample_weight: Any, groups: Any
) -> None:
    """Set a share of the rows aside, fit the estimator on the others, and predict those that were set aside.

    Args:
        estimator: with ``set_aside``, the share.
        fit: fits it on inputs, classes, weights and groups.
        x: all rows.
        y: their classes.
        sample_weight: as in `fit`; all must be the same.
        groups: as in `fit`.
    """
    share, x = check_share(estimator.set_aside), as_table(x)
    if estimator.warm_start:
        raise InvalidArgumentError("With `warm_start` rows that were set aside would train later. Leave `set_aside` out.")
    if not (estimator.cv is None or isinstance(estimator.cv, int | np.integer) or hasattr(estimator.cv, "split")):
        raise InvalidArgumentError(
            "Expected `cv` to be a number of folds or a splitter with `set_aside`: numbers of rows would count those that are "
            "set aside."
        )
    checked, classes = check_inputs(estimator, x, y, reset=True)
    weights = row_weights(sample_weight, checked)
    if len(np.unique(weights)) > 1:
        raise InvalidArgumentError(
            "Guarantees from rows that were set aside hold for rows that all count the same, but `sample_weight` differs. "
            "Leave `sample_weight` or `set_aside` out."
        )
    _, labels = class_indices(classes, weights)
    rows = _chosen(checked, labels, share, estimator.random_state, groups)
    rest = np.setdiff1d(np.arange(len(labels)), rows)
    given = [None if each is None else _safe_indexing(each, rest) for each in (sample_weight, groups)]
    fit(_safe_indexing(x, rest), _safe_indexing(y, rest), *given)
    estimator.set_aside_ = SetAside(rows, estimator.predict_proba(_safe_indexing(x, rows)), labels[rows])
    if hasattr(estimator, "out_of_fold_"):
        every = np.full((len(labels), len(estimator.classes_)), np.nan)
        every[rest] = estimator.out_of_fold_
        estimator.out_of_fold_ = every


def _chosen(x: Any, labels: Ints, share: float, random_state: Any, groups: Any) -> Ints:
    # A generator is not advanced: the fit that follows draws from it.
    state = random_state.get_state() if isinstance(random_state, np.random.RandomState) else None
    seed = int(check_random_state(random_state).randint(LARGEST_SEED))
    if state is not None:
        random_state.set_state(state)
    if groups is not None:
        own = np.unique(column_or_1d(groups), return_inverse=True)[1].astype(np.int64)
        return rows_to_set_aside(labels, share, seed=seed, groups=own)
    keys = row_keys(inputs_for(x, None).rows(x))
    if are_copies(keys, labels):
        try:
            return rows_to_set_aside(labels, share, seed=seed, groups=keys)
        except DataError:  # a class of copies
            pass
    return rows_to_set_aside(labels, share, seed=seed)
