"""The classes of examples, and how much each example counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from calibayes.errors import InvalidArgumentError

__all__ = ["LARGEST_SEED", "class_factors", "class_indices", "row_weights"]

Floats = npt.NDArray[np.float64]
LARGEST_SEED = 2**31 - 1


def row_weights(sample_weight: Any, x: Any) -> Floats:
    """The weight of each row, non-negative and not all zero; 1 if none were given."""
    weights: Floats = _check_sample_weight(sample_weight, x, dtype=np.float64)
    if (weights < 0).any():
        place = int(np.flatnonzero(weights < 0)[0])
        raise InvalidArgumentError(f"Expected no negative `sample_weight`, but number {place} is {weights[place]}.")
    if not weights.any():
        raise InvalidArgumentError("Expected some `sample_weight` to be positive, but each weight is zero.")
    return weights


def class_indices(y: npt.NDArray[Any], weights: Floats) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The classes of the rows that count, and the class index of each row; that of a row that does not count is any."""
    check_classification_targets(y)
    classes, known = np.unique(y[weights > 0], return_inverse=True)
    if len(classes) < 2:
        raise InvalidArgumentError(
            f"Expected at least two classes in `y`, but got one class, {classes.tolist()[0]!r}, in {len(known)} samples."
        )
    labels = np.zeros(len(y), dtype=np.int64)
    labels[weights > 0] = known.reshape(-1)
    return classes, labels


def class_factors(
    class_weight: Mapping[Any, float] | Literal["balanced"] | None, classes: npt.NDArray[Any], counts: Floats
) -> Floats:
    """The weight of each class.

    Args:
        class_weight: as scikit-learn has it.
        classes: all of them.
        counts: the sum of the weights of the rows of each.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(counts.sum() / (len(classes) * counts))
    weights = np.asarray(compute_class_weight(class_weight, classes=classes, y=classes), dtype=np.float64)
    if not ((weights >= 0) & np.isfinite(weights)).all() or not weights.any():
        raise InvalidArgumentError(
            "Expected `class_weight` to be non-negative finite numbers, some of them positive, but got "
            f"{dict(zip(classes.tolist(), weights.tolist(), strict=True))!r}."
        )
    return weights
