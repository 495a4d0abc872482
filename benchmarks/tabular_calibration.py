"""Calibration of any classifier of scikit-learn by cross-validation, with the best of its three ways or none."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

__all__ = ["CALIBRATIONS", "FOLDS", "SMALLEST", "CalibratedFolds", "calibrated_folds"]

Array = npt.NDArray[Any]
CALIBRATIONS = ("none", "temperature", "sigmoid", "isotonic")  # the first of equals is taken
FOLDS = 5
SMALLEST = 1e-15  # a probability of zero where the truth is would make a whole column infinite


@dataclass(frozen=True, eq=False)
class CalibratedFolds:
    """The average of one calibrated classifier per fold, as `CalibratedClassifierCV` predicts.

    Attributes:
        members: one classifier per fold, calibrated on the fold that it was not trained on.
        calibration: the way of calibration that was chosen.
        losses: the cross-validated log-loss of each way.
        choice_seconds: the CPU seconds that the choice took, beside those of fitting the chosen one.
    """

    members: tuple[Any, ...]
    calibration: str
    losses: dict[str, float]
    choice_seconds: float

    def predict_proba(self, x: Any) -> Array:
        """Predict the probabilities of the classes."""
        return np.mean([member.predict_proba(x) for member in self.members], axis=0)  # type: ignore[no-any-return]


def calibrated_folds(
    estimator: Any, x: Any, y: Array, seed: int, *, calibrations: tuple[str, ...] = CALIBRATIONS
) -> CalibratedFolds:
    """Fit ``CalibratedClassifierCV(estimator, method=..., cv=5)`` with the method of the lowest log-loss.

    No calibration of the five classifiers is a choice too: with a dozen rows to a fold, any other makes them worse. The five
    are trained once. Each way of calibration is then cross-validated on the predictions for the rows that each has not seen,
    which costs little, and the best one is fitted on all of these. Choosing by nested cross-validation of everything would
    take sixteen times as long.
    """
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))
    fitted = []
    totals = dict.fromkeys(calibrations, 0.0)
    seconds = 0.0
    for train, held_out in folds:
        model = FrozenEstimator(clone(estimator).fit(_safe_indexing(x, train), y[train]))
        rows, targets = _safe_indexing(x, held_out), y[held_out]
        fitted.append((model, rows, targets))
        parts = min(FOLDS, int(np.unique(targets, return_counts=True)[1].min()))
        if len(calibrations) > 1 and parts > 1:
            begin = time.process_time()
            for calibration in calibrations:
                totals[calibration] += _loss(model, rows, targets, calibration, parts, seed)
            seconds += time.process_time() - begin
    best = min(calibrations, key=lambda each: totals[each])
    members = tuple(_calibrated(model, rows, targets, best) for model, rows, targets in fitted)
    return CalibratedFolds(members, best, {name: total / len(y) for name, total in totals.items()}, seconds)


def _calibrated(model: Any, x: Any, y: Array, calibration: str) -> Any:
    if calibration == "none":
        return model
    everything = np.arange(len(y))  # the model is frozen: its folds only say which rows calibrate it
    return CalibratedClassifierCV(model, method=calibration, cv=[(everything, everything)]).fit(x, y)


def _loss(model: Any, x: Any, y: Array, calibration: str, parts: int, seed: int) -> float:
    """Return the sum of log-losses over the held-out rows of one classifier."""
    total = 0.0
    for fit, score in StratifiedKFold(parts, shuffle=True, random_state=seed).split(np.zeros(len(y)), y):
        calibrated = _calibrated(model, _safe_indexing(x, fit), y[fit], calibration)
        probs = calibrated.predict_proba(_safe_indexing(x, score))[np.arange(len(score)), y[score]]
        total -= float(np.log(np.clip(probs, SMALLEST, 1)).sum())
    return total
