"""Train a classifier once, on all rows: the way of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from calibayes.errors import InvalidArgumentError
from calibayes.estimator.class_labels import LARGEST_SEED, class_factors, class_indices, row_weights
from calibayes.estimator.classifier_settings import ClassifierSettings
from calibayes.estimator.column_scaling import fitted_scaler, network_inputs
from calibayes.estimator.distinct_examples import distinct
from calibayes.estimator.learning import Learner

__all__ = ["fit_once", "scaled_inputs"]


def fit_once(estimator: Any, method: str, x: Any, y: Any, sample_weight: Any, groups: Any) -> None:
    """Fit an estimator with ``cv=None``."""
    if groups is not None:
        raise InvalidArgumentError(
            "`groups` keeps rows in one fold, but `cv=None` has no folds. Leave `groups` out, or use `cv=5`."
        )
    settings = ClassifierSettings.of(estimator, method)
    continues = bool(estimator.warm_start) and hasattr(estimator, "history_")
    standardize = estimator.scaler_ is not None if continues else estimator.standardize
    x, y = validate_data(
        estimator, x, y, dtype=np.float64 if standardize else np.float32, accept_sparse="csr", reset=not continues
    )
    x = x.toarray() if hasattr(x, "toarray") else x
    weights = row_weights(sample_weight, x)
    classes, labels = class_indices(y, weights)
    used = weights > 0
    examples = distinct(x[used], labels[used], weights[used])
    factors = class_factors(
        estimator.class_weight, classes, np.bincount(examples.y, weights=examples.counts).astype(np.float64)
    )
    examples = examples._replace(weights=examples.counts * factors[examples.y])
    if continues:
        if not np.array_equal(classes, estimator.classes_):
            raise InvalidArgumentError(
                f"With `warm_start`, `y` must have the classes that it had at first, {estimator.classes_.tolist()}, but it has "
                f"{classes.tolist()}. Use `warm_start=False` to start again."
            )
        settings = settings.with_known(estimator.lam_, estimator.beta_)
        scaler, seed, fits, start = estimator.scaler_, estimator._seed, estimator._fits + 1, estimator.posterior_
    else:
        scaler = fitted_scaler(examples.x, examples.counts) if standardize else None
        seed, fits, start = int(check_random_state(estimator.random_state).randint(LARGEST_SEED)), 0, None
    examples = examples._replace(x=network_inputs(examples.x, scaler))
    learned = Learner(settings, len(classes), seed, fits, start).learn(examples)
    for name in ("attempts_", "out_of_fold_"):
        vars(estimator).pop(name, None)  # of an earlier fit with folds
    estimator.classes_, estimator.scaler_, estimator._seed, estimator._fits = classes, scaler, seed, fits
    estimator.posterior_, estimator.history_ = learned.posterior, learned.history
    estimator.lam_, estimator.beta_, estimator.choices_ = learned.lam, learned.beta, list(learned.tried)
    estimator.n_iter_ = len(learned.history.epochs)
    estimator.method_, estimator.scaling_, estimator._inputs = settings.method, None, None
    estimator._out_of_fold = None


def scaled_inputs(estimator: Any, x: Any) -> Any:
    """Rows to predict for the user's network, or that of one training."""
    dtype = np.float32 if estimator.scaler_ is None else np.float64
    checked = validate_data(estimator, x, dtype=dtype, accept_sparse="csr", reset=False)
    return network_inputs(checked.toarray() if hasattr(checked, "toarray") else checked, estimator.scaler_)
