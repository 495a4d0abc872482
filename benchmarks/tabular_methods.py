"""The classifiers that are compared on tables: functions that train on rows and return a function that predicts others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import calibayes as cb
from benchmarks.tabular_calibration import FOLDS, calibrated_folds
from benchmarks.tabular_tabm import tabm

__all__ = ["BASE", "EFFORT", "METHODS", "OURS", "ROWS", "Method", "Predict", "Trained", "penalty", "prepared"]

Array = npt.NDArray[Any]
Predict = Callable[[pd.DataFrame], dict[str, Array]]
"""A function from rows to probabilities, by the name of the line that they are scored in."""


class Trained(NamedTuple):
    """A trained classifier.

    Attributes:
        predict: its predictions.
        chosen: what it has chosen, such as a way of calibration.
        choice_seconds: CPU seconds that do not count: those of a choice which somebody who knows the best does not make.
        held_out_nll: what a cross-fitted classifier says of itself: the NLL of its held-out predictions.
    """

    predict: Predict
    chosen: str = ""
    choice_seconds: float = 0.0
    held_out_nll: float | None = None


Method = Callable[[pd.DataFrame, Array, int, int | None], Trained]
"""A function of rows, class indices, a seed and a number of epochs, by default as many as the classifier takes by itself."""

OURS, BASE = "calibayes default", "HistGradientBoosting"
_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
_ENOUGH = 2_000  # rows for a tenth of them to tell when to stop

EFFORT = {
    OURS: "CalibayesClassifier() with all its defaults; rows as they are",
    "calibayes network": 'CalibayesClassifier(method="ema"): the cross-fitted network alone; rows as they are',
    "calibayes FNN to CA-BNN": "the paper's schemes, one training on all rows (cv=None); columns as for LogisticRegression",
    BASE: "default settings with native categories, CalibratedClassifierCV of five folds, the best of temperature, sigmoid, "
    "isotonic and none by cross-validated log-loss",
    "LogisticRegression": "one-hot categories, median for missing numbers with an indicator, standardised; C of "
    f"{', '.join(f'{value:g}' for value in _PENALTIES)} by five-fold log-loss, then calibrated like {BASE}",
    "MLPClassifier": "default settings; columns as for LogisticRegression",
    "MLPClassifier, calibrated": f"with early stopping from {_ENOUGH:,} rows on, calibrated like {BASE}; columns as for "
    "LogisticRegression",
    "TabM": "the package's default network with piecewise-linear embeddings, trained as its authors suggest, stopped early by "
    "the NLL of a fifth of the training rows",
    "TabM, temperature": "the same network with a temperature fitted on that fifth",
}


def prepared(estimator: Any) -> Any:
    """Put a classifier behind one-hot categories and standardised numbers without missing values."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    categories = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")), (categories, make_column_selector(dtype_include="category"))
    )
    return make_pipeline(columns, estimator)


def penalty(x: Any, y: Array, seed: int, values: tuple[float, ...] = _PENALTIES, folds: int = FOLDS) -> tuple[float, float]:
    """Return the C of logistic regression with the lowest cross-validated log-loss, and that loss."""
    search = LogisticRegressionCV(
        Cs=list(values), cv=StratifiedKFold(folds, shuffle=True, random_state=seed), scoring="neg_log_loss", max_iter=1000,
        l1_ratios=(0,), use_legacy_attributes=False, refit=False,
    )  # fmt: skip
    search.fit(x, y)
    losses = -np.asarray(search.scores_).mean(0).reshape(-1)
    return values[int(losses.argmin())], float(losses.min())


def _only(name: str, model: Any) -> Trained:
    """A classifier of one line."""
    return Trained(lambda rows: {name: model.predict_proba(rows)})


def _folds(name: str, model: Any, x: pd.DataFrame, y: Array, seed: int) -> Trained:
    """A classifier of one line, calibrated by cross-validation."""
    folds = calibrated_folds(model, x, y, seed)
    return Trained(_only(name, folds).predict, folds.calibration, folds.choice_seconds)


def _boosting(x: pd.DataFrame, y: Array, seed: int, epochs: int | None) -> Trained:
    model = HistGradientBoostingClassifier(max_iter=epochs or 100, random_state=seed)
    return _folds(BASE, model, x, y, seed)


def _logistic(x: pd.DataFrame, y: Array, seed: int, epochs: int | None) -> Trained:
    best, _ = penalty(prepared("passthrough").fit_transform(x), y, seed)
    model = prepared(LogisticRegression(C=best, max_iter=1000))
    return _folds("LogisticRegression", model, x, y, seed)


def _perceptron(x: pd.DataFrame, y: Array, seed: int, epochs: int | None) -> Trained:
    model = prepared(MLPClassifier(max_iter=epochs or 200, random_state=seed))
    return _only("MLPClassifier", model.fit(x, y))


def _calibrated_perceptron(x: pd.DataFrame, y: Array, seed: int, epochs: int | None) -> Trained:
    model = prepared(MLPClassifier(early_stopping=len(y) >= _ENOUGH, max_iter=epochs or 200, random_state=seed))
    return _folds("MLPClassifier, calibrated", model, x, y, seed)


def _ours(name: str, *, columns: bool = False, **settings: Any) -> Method:
    """A classifier of calibayes; with ``columns``, behind the preparation that others need too."""

    def method(x: pd.DataFrame, y: Array, seed: int, epochs: int | None) -> Trained:
        shortened: dict[str, Any] = {} if epochs is None else {"epochs": epochs}
        model = cb.CalibayesClassifier(random_state=seed, **settings, **shortened)
        if columns:
            return _only(name, prepared(model).fit(x, y))
        model.fit(x, y)
        return Trained(_only(name, model).predict, model.method_, held_out_nll=_held_out_nll(model, y))

    return method


def _held_out_nll(model: Any, y: Array) -> float:
    probs = model.out_of_fold_[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return float(-np.log(np.maximum(probs[~np.isnan(probs)], 1e-15)).mean())


def _quiet(method: Method) -> Method:
    """Keep warnings about trainings that end at their limit to ourselves: those of `MLPClassifier` do by default."""

    def quiet(x: pd.DataFrame, y: Array, seed: int, epochs: int | None) -> Trained:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return method(x, y, seed, epochs)

    return quiet


METHODS: dict[str, Method] = {
    OURS: _ours(OURS),
    "calibayes network": _ours("calibayes network", method="ema"),
    **{
        f"calibayes {scheme.upper()}": _ours(f"calibayes {scheme.upper()}", columns=True, method=scheme, cv=None)
        for scheme in cb.SCHEMES
    },
    BASE: _boosting,
    "LogisticRegression": _logistic,
    "MLPClassifier": _quiet(_perceptron),
    "MLPClassifier, calibrated": _quiet(_calibrated_perceptron),
    "TabM": lambda x, y, seed, epochs: Trained(tabm(x, y, seed, epochs)),
}
ROWS = (*METHODS, "TabM, temperature")  # TabM has two lines of one training
