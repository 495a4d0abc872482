"""Prediction sets and thresholds of a fitted classifier: from rows that were set aside, or cross-conformal ones."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from calibayes.acting import ActingWarning, PredictionSets, Threshold, cross_conformal_sets
from calibayes.checks import fraction
from calibayes.errors import InvalidArgumentError
from calibayes.estimator.member_predictions import predictive_of
from calibayes.posterior import Ensemble

__all__ = ["decision_threshold", "predict_set"]

_ROUNDING = 1e-6  # of probabilities that are computed again
_DIGITS = 6


def predict_set(estimator: Any, x: Any, coverage: float, score: Any, by_class: bool) -> npt.NDArray[np.bool_]:
    """Return the sets of rows as booleans ``[n, K]``."""
    coverage = fraction("coverage", coverage)
    if estimator.set_aside_ is not None:
        kept = estimator.set_aside_
        fitted = PredictionSets.fit(kept.probs, kept.labels, coverage, score, by_class)
        fitted = replace(fitted, thresholds=fitted.thresholds + _ROUNDING)
        found: npt.NDArray[np.bool_] = fitted.predict(estimator.predict_proba(x)).numpy()
        return found
    kept = estimator._out_of_fold
    if kept is None or by_class:
        why = "sets of each class need" if by_class else "prediction sets need"
        raise InvalidArgumentError(f"No rows were set aside, which {why}. Fit with `CalibayesClassifier(set_aside=0.2)`.")
    sets = cross_conformal_sets(kept.probs.round(_DIGITS), kept.labels, kept.folds, coverage, score)
    warnings.warn(
        f"No rows were set aside, so these are cross-conformal sets: they hold the true class for at least "
        f"{sets.guaranteed_level:.4g} of new examples (1 - 2α), and for about {coverage:.4g} in practice. This ignores "
        "that the held-out rows also helped to choose the method and when to stop training. For a guarantee of "
        f"{coverage:.4g}, fit with `CalibayesClassifier(set_aside=0.2)`.",
        ActingWarning,
        stacklevel=3,
    )
    return sets.predict(torch.stack([_probs_of_fold(estimator, parts, x) for parts in kept.members])).numpy()


def decision_threshold(estimator: Any, accuracy: float, certainty: float) -> Threshold:
    """Return the certified threshold of a fitted estimator."""
    if estimator.set_aside_ is None:
        raise InvalidArgumentError(
            "No rows were set aside, so no threshold can be certified: out-of-fold predictions of members guarantee nothing "
            "about their average. Fit with `CalibayesClassifier(set_aside=0.2)`, or use `calibayes.acting.Threshold.fit` on "
            "predictions of other rows."
        )
    return Threshold.fit(estimator.set_aside_.probs, estimator.set_aside_.labels, accuracy, certainty)


def _probs_of_fold(estimator: Any, parts: tuple[tuple[int, ...], ...], x: Any) -> torch.Tensor:
    """Return the mean of the parts' probabilities, each by the members that were trained without the fold."""
    members = list(estimator.posterior_.members)
    posteriors = [[members[place] for place in places] for places in parts]
    found = [predictive_of(estimator, each[0] if len(each) == 1 else Ensemble(each), x).probs for each in posteriors]
    return torch.stack(found).mean(0).cpu().round(decimals=_DIGITS)
