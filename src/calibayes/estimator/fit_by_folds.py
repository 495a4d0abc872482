"""Fit a classifier by cross-fitting, and make rows to predict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import column_or_1d, validate_data

from calibayes.estimator.class_labels import LARGEST_SEED, class_factors, class_indices, row_weights
from calibayes.estimator.column_scaling import fitted_scaler, network_inputs
from calibayes.estimator.cross_fitting import cross_fitted, held_out_of, inputs_for, method_of, tried
from calibayes.estimator.fit_once import scaled_inputs
from calibayes.estimator.out_of_fold import out_of_fold_of
from calibayes.estimator.sparse_logistic import SparseColumns, dense_blocks
from calibayes.estimator.table_columns import check_inputs
from calibayes.estimator.training_rows import folds_of, row_keys, training_rows

__all__ = ["fit_by_folds", "predicted_blocks"]

_OF_ONE_TRAINING = ("history_", "lam_", "beta_", "choices_", "n_iter_")


def fit_by_folds(estimator: Any, method: str | None, x: Any, y: Any, sample_weight: Any, groups: Any) -> None:
    """Fit an estimator with folds; ``method=None`` chooses one."""
    own_network = not isinstance(estimator.network, str)
    if own_network:
        dtype = np.float64 if estimator.standardize else np.float32
        x, y = validate_data(estimator, x, y, dtype=dtype, accept_sparse="csr")
        x = x.toarray() if hasattr(x, "toarray") else x
    else:
        x, y = check_inputs(estimator, x, y, reset=True)
    weights = row_weights(sample_weight, x)
    classes, labels = class_indices(y, weights)
    factors = class_factors(estimator.class_weight, classes, np.bincount(labels, weights=weights).astype(np.float64))
    numbers = None
    if groups is not None:
        check_consistent_length(x, groups)
        numbers = np.unique(column_or_1d(groups), return_inverse=True)[1].astype(np.int64)
    seed = int(check_random_state(estimator.random_state).randint(LARGEST_SEED))
    scaler = fitted_scaler(x, weights) if own_network and estimator.standardize else None
    inputs = None if own_network else inputs_for(x, method)
    rows = network_inputs(x, scaler) if inputs is None else inputs.rows(x)
    training = training_rows(row_keys(rows), labels, weights, factors, numbers)
    folds = folds_of(estimator.cv, training, x, y, groups, seed)
    chosen = cross_fitted(estimator, method, inputs, rows, training, folds, len(classes), seed)
    for name in _OF_ONE_TRAINING:
        vars(estimator).pop(name, None)  # of an earlier fit
    estimator.classes_, estimator.scaler_, estimator._seed, estimator._inputs = classes, scaler, seed, inputs
    estimator.posterior_, estimator.scaling_ = chosen.posterior, chosen.scaling
    estimator.method_, estimator.attempts_ = method_of(chosen.selection.best), tried(chosen)
    estimator.out_of_fold_ = held_out_of(chosen, training, len(y))
    estimator._out_of_fold = out_of_fold_of(chosen, training)


def predicted_blocks(estimator: Any, x: Any) -> Iterable[Any]:
    """Rows for the members of a fitted estimator; one block, or several of a wide sparse matrix."""
    if estimator._inputs is None:
        return [scaled_inputs(estimator, x)]
    checked, _ = check_inputs(estimator, x, reset=False)
    if isinstance(estimator._inputs, SparseColumns):
        from scipy import sparse

        return dense_blocks(estimator._inputs.rows(sparse.csr_matrix(checked)))
    return [estimator._inputs.rows(checked)]
