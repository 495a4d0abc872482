"""scikit-learn's own checks of estimators: all of them pass, also that a weight of two is a row twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import calibayes as cb

# Fewer and longer steps than by default, since there are hundreds of trainings.
SETTINGS: dict[str, Any] = {"epochs": 20, "learning_rate": 0.03, "predict_samples": 4}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        cb.CalibayesClassifier(epochs=5),
        cb.CalibayesClassifier(cv=None, **SETTINGS),
    ]
)
def test_scikit_learn_finds_nothing_wrong(estimator: cb.CalibayesClassifier, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [cb.CalibayesClassifier("ca-fnn", cv=None, class_weight="balanced", early_stopping=True, **SETTINGS)]
)
def test_nor_with_weights_of_classes_and_early_stopping(
    estimator: cb.CalibayesClassifier, check: Callable[[Any], None]
) -> None:
    check(estimator)
