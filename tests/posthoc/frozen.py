"""A classifier whose scores are given: the way into scikit-learn's own post-hoc calibration."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator


class Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Its inputs are its scores: one column for two classes, else one a class."""

    def fit(self, x: npt.NDArray[Any], y: npt.NDArray[Any]) -> Given:
        self.classes_ = np.unique(y)
        self.n_features_in_ = x.shape[1]
        return self

    def decision_function(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return x[:, 0] if x.shape[1] == 1 else x

    def predict(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        raise AssertionError("scikit-learn asks that it exists, and must not call it")


def sklearn_calibrated(
    method: str, scores: npt.NDArray[Any], targets: npt.NDArray[Any], weights: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    """The probabilities of scikit-learn's calibration by ``method``, fitted on and applied to ``scores [n, K or 1]``."""
    model = CalibratedClassifierCV(FrozenEstimator(Given().fit(scores, targets)), method=method)
    with warnings.catch_warnings():
        # It warns that the weights only reach the calibration, which is what is wanted here.
        warnings.filterwarnings("ignore", "Since FrozenEstimator does not appear to accept sample_weight")
        found: npt.NDArray[Any] = model.fit(scores, targets, sample_weight=weights).predict_proba(scores)
    return found
