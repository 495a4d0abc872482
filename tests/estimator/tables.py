"""Small tables, and a classifier that is quick to train."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_iris

import calibayes as cb

Array = npt.NDArray[Any]


def iris() -> tuple[Array, Array]:
    x, y = load_iris(return_X_y=True)
    return x, y


def overlapping(n: int = 120, seed: int = 0) -> tuple[Array, Array]:
    """Two classes that no classifier can tell apart for sure, and a column that says nothing."""
    draws = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return np.column_stack([y + draws.normal(size=n), draws.normal(size=n), np.full(n, 3.0)]), y


def classifier(method: str | None = None, **settings: Any) -> cb.CalibayesClassifier:
    return cb.CalibayesClassifier(method, **{"cv": None, "epochs": 8, "predict_samples": 8, "random_state": 0, **settings})
