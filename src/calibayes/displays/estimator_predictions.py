"""The predictions of a fitted classifier that follows scikit-learn's conventions."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from calibayes.errors import InvalidArgumentError, InvalidTargetsError
from calibayes.wording import first_few

__all__ = ["Classifier", "predictions_of"]


class Classifier(Protocol):
    """A classifier with probabilities, and with the label that each of their columns stands for."""

    @property
    def classes_(self) -> Any:
        """The labels, in the order of the columns of `predict_proba`."""

    def predict_proba(self, X: Any, /) -> Any:  # noqa: N803
        """Class probabilities, shape ``[n, K]``."""


def predictions_of(estimator: Classifier, X: Any, y: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:  # noqa: N803
    """A fitted classifier's probabilities of inputs ``X``, and the columns of the true labels ``y``, as listed in ``classes_``.

    Examples:
        >>> from sklearn.linear_model import LogisticRegression
        >>> animals = LogisticRegression().fit([[0.0], [1.0], [2.0]], ["cat", "cat", "dog"])
        >>> probs, targets = predictions_of(animals, [[0.0], [2.0]], ["dog", "cat"])
        >>> probs.shape, targets.tolist()
        ((2, 2), [1, 0])
    """
    name = type(estimator).__name__
    for needed in ("predict_proba", "classes_"):
        if not hasattr(estimator, needed):
            raise InvalidArgumentError(
                f"Expected a fitted classifier with `predict_proba` and `classes_`, but {name} has no `{needed}`. "
                "Fit it first; or compute probabilities [n, K] yourself and call `from_predictions`."
            )
    probs, classes = np.asarray(estimator.predict_proba(X)), np.asarray(estimator.classes_)
    if probs.ndim != 2 or classes.shape != probs.shape[1:]:
        raise InvalidArgumentError(
            f"Expected {name} to have one label in `classes_` per column of `predict_proba`, but their shapes are "
            f"{list(classes.shape)} and {list(probs.shape)}. Several outputs: draw each with `from_predictions`."
        )
    return probs, _columns(np.asarray(y), classes, name)


def _columns(labels: npt.NDArray[Any], classes: npt.NDArray[Any], name: str) -> npt.NDArray[np.intp]:
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InvalidTargetsError(f"Expected `y` to hold one label per example, but its shape is {list(labels.shape)}.")
    column = {label: index for index, label in enumerate(classes.tolist())}
    columns = [column.get(label, -1) for label in labels.tolist()]
    if -1 in columns:
        row = columns.index(-1)
        known = first_few([repr(label) for label in classes.tolist()], 5)
        raise InvalidTargetsError(
            f"Label {row} of `y` is {labels.tolist()[row]!r}, which {name} was not fitted on: it knows {known}. "
            "Leave such examples out, or fit the classifier on them too."
        )
    return np.asarray(columns, dtype=np.intp)
