"""The calibrated classifier: scikit-learn's checks, and every kind of input and split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from calibayes.posthoc import CalibratedClassifier


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        CalibratedClassifier(LogisticRegression(), cv=3),
        CalibratedClassifier(RidgeClassifier(tol=1e-12), method="temperature", cv=3, repeats=1),
    ]
)
def test_scikit_learn_finds_nothing_wrong(estimator: CalibratedClassifier, check: Callable[[Any], None]) -> None:
    check(estimator)
