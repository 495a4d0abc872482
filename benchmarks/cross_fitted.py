"""Cross-fitted classifiers on small tables: out-of-fold predictions of repeated folds, and every member's on a test part."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.tabular_sets import KEEL, OWN, discretised

__all__ = ["BASES", "FOLDS", "REPEATS", "SETS", "CrossFitted", "cross_fitted"]

Array = npt.NDArray[Any]
FOLDS, REPEATS = 5, 3
_MOST_TRAIN, _MOST_TEST = 1000, 4000
_SYNTHETIC = {"synthetic-2": 2, "synthetic-3": 3, "synthetic-5": 5, "synthetic-10": 10}
SETS = tuple(sorted((*OWN, *KEEL, *_SYNTHETIC)))
BASES: dict[str, Callable[[int], Any]] = {
    "logistic": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "boosting": lambda seed: HistGradientBoostingClassifier(max_iter=60, random_state=seed),
    "perceptron": lambda seed: make_pipeline(StandardScaler(), MLPClassifier(max_iter=200, random_state=seed)),
}


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """One classifier cross-fitted on one split of one table.

    Attributes:
        out_of_fold: probabilities of the members that did not see the row, ``[R, n, K]``.
        fold: the fold of each row in each repeat, ``[R, n]``.
        targets: classes of the rows, ``[n]``.
        test: probabilities of every member, ``[R, folds, n_test, K]``.
        test_targets: classes of the test rows.
    """

    out_of_fold: Array
    fold: Array
    targets: Array
    test: Array
    test_targets: Array


def cross_fitted(table: str, base: str, seed: int, folder: Path | None) -> CrossFitted:
    """Train, or read what was trained before from ``folder``."""
    file = None if folder is None else folder / f"{table}-{base}-{seed}.npz"
    if file is not None and file.exists():
        with np.load(file) as stored:
            return CrossFitted(**stored)
    result = _trained(table, base, seed)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, **vars(result))
    return result


def _trained(table: str, base: str, seed: int) -> CrossFitted:
    x, y = _synthetic(_SYNTHETIC[table], seed) if table in _SYNTHETIC else discretised(table)
    train = min(_MOST_TRAIN, round(0.6 * len(y)))
    x, x_test, y, y_test = train_test_split(
        x, y, train_size=train, test_size=min(_MOST_TEST, len(y) - train), stratify=y, random_state=seed
    )
    classes = int(y.max()) + 1
    out_of_fold = np.zeros((REPEATS, len(y), classes))
    fold = np.zeros((REPEATS, len(y)), dtype=np.int8)
    test = np.zeros((REPEATS, FOLDS, len(y_test), classes), dtype=np.float32)
    for repeat, member, rows, held_out in _splits(x, y, seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = BASES[base](100 * seed + 10 * repeat + member).fit(x[rows], y[rows])
        fold[repeat, held_out] = member
        out_of_fold[repeat, held_out] = model.predict_proba(x[held_out])
        test[repeat, member] = model.predict_proba(x_test)
    return CrossFitted(out_of_fold, fold, y, test, y_test)


def _splits(x: Array, y: Array, seed: int) -> Iterator[tuple[int, int, Array, Array]]:
    for repeat in range(REPEATS):
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=100 * seed + repeat)
        for member, (rows, held_out) in enumerate(folds.split(x, y)):
            yield repeat, member, rows, held_out


def _synthetic(classes: int, seed: int) -> tuple[Array, Array]:
    """Rows with a tenth of the labels wrong, more where there are more classes."""
    return make_classification(  # type: ignore[no-any-return]
        500 if classes < 5 else 1667,
        20,
        n_informative=8,
        n_classes=classes,
        flip_y=0.1,
        random_state=seed + classes,
    )
