"""Cross-fit a classifier: every row trains, every row calibrates, and the method is chosen by evidence."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from calibayes.checks import positive
from calibayes.crossfit import (
    ChosenClassifier,
    Fold,
    Representation,
    budget_for,
    choose_classifier,
    contenders,
    table_representation,
)
from calibayes.errors import InvalidArgumentError
from calibayes.estimator.classifier_network import built_network
from calibayes.estimator.classifier_settings import ClassifierSettings
from calibayes.estimator.learning import check_outputs
from calibayes.estimator.sparse_logistic import SparseColumns, choose_on_sparse
from calibayes.estimator.table_columns import TableColumns
from calibayes.estimator.training_rows import TrainingRows
from calibayes.methods import Examples, method_named
from calibayes.posterior import Point

__all__ = ["Inputs", "Tried", "cross_fitted", "held_out_of", "inputs_for", "method_of", "tried"]

_SPARSE_COLUMNS = 1000  # of a sparse matrix: beyond it, logistic regression on the sparse columns is tried alone
_MOST_CELLS = 2**28  # of a sparse matrix that is made dense: one gigabyte


class Inputs(Protocol):
    """Turns checked inputs into rows for the members."""

    def rows(self, x: Any) -> Any:
        """The rows."""


class Tried(NamedTuple):
    """A way to learn that was tried.

    Attributes:
        method: the name of the method; those of the parts of an average, joined by ``+``.
        result: ``"complete"``, why it was given up after its first fold, or ``"failed"``.
        nll: the mean out-of-fold NLL, before any scaling; NaN if it failed.
        standard_error: of that mean.
        seconds: that it took.
        reason: why it was given up or failed; empty if it did neither.
        title: its name in words, which tells networks apart that see their inputs in different ways.
    """

    method: str
    result: Literal["complete", "behind", "too slow", "failed"]
    nll: float
    standard_error: float
    seconds: float
    reason: str
    title: str


def inputs_for(x: Any, method: str | None) -> Inputs:
    """How rows are made of checked inputs: numbers and codes of a table, or sparse columns as they are."""
    if not hasattr(x, "toarray"):
        return TableColumns.fit(x)
    wide = x.shape[1] > _SPARSE_COLUMNS or x.shape[0] * x.shape[1] > _MOST_CELLS
    if wide and method in (None, "logistic-regression"):
        if np.isnan(x.data).any():
            raise InvalidArgumentError(
                f"Expected no missing values in a sparse matrix of {x.shape[1]:,} columns, but some are NaN. Impute them first."
            )
        return SparseColumns.fit(x)
    if x.shape[0] * x.shape[1] > _MOST_CELLS:
        raise InvalidArgumentError(
            f"The method {method!r} needs a dense matrix, but {x.shape[0]:,} rows and {x.shape[1]:,} columns would take "
            f"{x.shape[0] * x.shape[1] * 4 / 2**30:.1f} GB. Use `method='logistic-regression'`, which takes sparse ones, "
            "or fewer columns."
        )
    return TableColumns.fit(x)


def cross_fitted(
    estimator: Any,
    method: str | None,
    inputs: Inputs | None,
    x: Any,
    rows: TrainingRows,
    folds: list[Fold],
    classes: int,
    seed: int,
) -> ChosenClassifier:
    """Return the classifier chosen for an estimator.

    Args:
        estimator: has the settings.
        method: the name of the only method to train; ``None`` to choose.
        inputs: made the rows; ``None`` if they are for the user's own network.
        x: all rows for members, in the order given.
        rows: those to train on.
        folds: of these.
        classes: how many there are.
        seed: of everything random.
    """
    targets = torch.from_numpy(rows.labels)
    weights = None if rows.weights is None else torch.from_numpy(rows.weights.astype(np.float32))
    if isinstance(inputs, SparseColumns):
        return choose_on_sparse(x[rows.source], targets, weights, classes, folds)
    settings = ClassifierSettings.of(estimator, method or "ema")
    known = x[rows.source]
    if isinstance(inputs, TableColumns):
        representation = table_representation(known, inputs.numbers, inputs.categories, classes)
    else:
        representation = _of_network(settings, known, classes)
    representation = replace(representation, fit={**representation.fit, **_fit_arguments(estimator, settings)})
    changed: dict[str, Any] = {} if estimator.learning_rate is None else {"learning_rate": settings.learning_rate}
    if estimator.optimizer is not None:
        changed["weight_decay"] = 0.0  # the optimiser's own
    representation = replace(representation, settings={"ema": {**representation.settings["ema"], **changed}})
    own = {} if method is None else _method_settings(estimator, method, settings)
    ways, blends = contenders(
        representation,
        Examples(torch.from_numpy(known), targets, weights),
        classes,
        folds,
        seed=seed,
        samples=settings.predict_samples,
        method=method,
        settings=own,
    )
    seconds = budget_for(*known.shape) if estimator.budget is None else positive("budget", estimator.budget)
    return choose_classifier(ways, budget=seconds, blends=blends, say=_say if estimator.verbose else lambda line: None)


def tried(chosen: ChosenClassifier) -> list[Tried]:
    """What was tried, simpler ways first."""
    return [
        Tried(method_of(each), each.result, each.nll, each.standard_error, each.seconds, each.reason, each.title)
        for each in chosen.selection.attempts
    ]


def method_of(attempt: Any) -> str:
    """The name of the method of an attempt; those of the parts of an average, joined by ``+``."""
    return "+".join(dict.fromkeys(part.learner.method for part in attempt.parts))


def _of_network(settings: ClassifierSettings, rows: npt.NDArray[np.float32], classes: int) -> Representation:
    """The user's own network, on standardised columns."""
    make = partial(_user_network, settings.network, rows.shape[0], rows.shape[1], classes)
    check_outputs(Point(make(settings.method)), rows, classes)
    usual = {"ema": {"learning_rate": 1e-3, "weight_decay": 1e-2, "ema": 0.98}}
    return Representation(None, make, usual, {"own_network": True, "patience": 12})


def _user_network(network: Any, rows: int, features: int, classes: int, method: str) -> nn.Module:
    return built_network(network, rows, features, classes, torch.initial_seed() % 2**31)


def _method_settings(estimator: Any, method: str, settings: ClassifierSettings) -> Mapping[str, Any]:
    if method_named(method).plan is not None:
        return settings.cross_fitted(estimator)
    return dict(estimator.method_settings or {})


def _fit_arguments(estimator: Any, settings: ClassifierSettings) -> dict[str, Any]:
    """The arguments of `NetworkLearner` that an estimator was given."""
    found: dict[str, Any] = {"device": settings.device}
    for name in ("epochs", "batch_size"):
        if getattr(estimator, name) is not None:
            found[name] = getattr(settings, name)
    if estimator.optimizer is not None:
        found["optimizer"] = partial(settings.optimizer, lr=settings.learning_rate)
    if estimator.early_stopping is not None:
        found["patience"] = settings.stopping
    return found


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def held_out_of(chosen: ChosenClassifier, rows: TrainingRows, count: int) -> npt.NDArray[np.float64]:
    """The honest probabilities of the rows as they were given; NaN for those that were never held out."""
    found = np.full((count, chosen.held_out.shape[1]), np.nan)
    found[rows.source[chosen.rows]] = chosen.held_out
    return found
