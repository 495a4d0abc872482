"""A model with rows set aside that trains in a moment, and fresh rows like its own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tests.files.made import write_csv

from calibayes.files import Trained, train

__all__ = ["HEADER", "QUICK", "drawn_rows", "trained"]

HEADER = ("x", "z", "kind")
CLASSES = ("cat|s", "cow", "dog")
QUICK: dict[str, Any] = {"target": "kind", "scheme": "logistic-regression", "folds": 3}


def drawn_rows(n: int, seed: int = 0) -> list[list[str]]:
    """Rows of three classes that overlap; one has the sign in its name that joins sets."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    x, z = rng.normal(1.2 * labels), rng.normal(labels % 2)
    return [[f"{a:.5f}", f"{b:.5f}", CLASSES[label]] for a, b, label in zip(x, z, labels, strict=True)]


@cache
def trained() -> Trained:
    """Trained once for all tests that only look at it."""
    with TemporaryDirectory() as folder:
        path = write_csv(Path(folder) / "t.csv", drawn_rows(600), HEADER)
        return train(path, **QUICK, sets=0.9, certify="accuracy=0.8", set_aside=0.4)
