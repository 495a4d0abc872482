"""Pairs of confidence and correctness, where the probabilities of all classes are not known: answers of language models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calibayes.errors import InvalidArgumentError
from calibayes.metrics.prediction_arrays import Array, Predictions, as_predictions
from calibayes.numpy_arrays import from_numpy

__all__ = ["NEED_ALL_PROBABILITIES", "as_pairs", "as_values"]

NEED_ALL_PROBABILITIES = ("top_k", "brier_reliability", "brier_resolution", "brier_uncertainty", "ece_classwise")


def as_pairs(
    confidence: Array | Sequence[float], correct: Array | Sequence[Any], weights: Array | Sequence[float] | None = None
) -> Predictions:
    """Pairs as predictions of two outcomes, right and wrong, of which the first is always decided for.

    Args:
        confidence: how sure the classifier is of its answer, in 0 … 1, shape ``[n]``.
        correct: whether the answer is right: booleans, or 0 and 1.
        weights: how much each example counts.

    Examples:
        >>> found = as_pairs([0.9, 0.3], [True, False])
        >>> found.confidence.tolist(), found.correct.tolist()
        ([0.9, 0.3], [1.0, 0.0])
    """
    r, c = _column("confidence", confidence), _column("correct", correct).double()
    if len(r) != len(c):
        raise InvalidArgumentError(
            f"Expected `confidence` and `correct` of one length, but got {len(r):,} and {len(c):,} values."
        )
    _check("confidence", r, (r >= 0) & (r <= 1), "between 0 and 1; divide per cent by 100")
    _check("correct", c, (c == 0) | (c == 1), "0 or 1 (False or True)")
    r = r if r.is_floating_point() else r.double()
    found = as_predictions(torch.stack((r, 1 - r), -1), (1 - c).long(), None if weights is None else as_values(weights))
    return replace(found, pairs=True)


def as_values(values: Any) -> Any:
    """Lists and tuples as arrays, and a `Predictive` as its probabilities; anything else as it is."""
    values = getattr(values, "probs", values)
    return np.asarray(values) if isinstance(values, list | tuple) else values


def _column(name: str, values: Any) -> Tensor:
    values = as_values(values)
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "fiub":
            raise InvalidArgumentError(f"Expected `{name}` to hold numbers, but got dtype {values.dtype}.")
        values = from_numpy(values)
    if not isinstance(values, Tensor):
        raise InvalidArgumentError(f"Expected `{name}` to be a list, an array or a tensor, but got {type(values).__name__}.")
    if values.dim() != 1 or not len(values):
        raise InvalidArgumentError(f"Expected `{name}` to hold one value per example, but got shape {list(values.shape)}.")
    return values.detach().cpu()


def _check(name: str, values: Tensor, good: Tensor, expected: str) -> None:
    if not bool(good.all()):
        row = int((~good).nonzero()[0])
        raise InvalidArgumentError(f"Expected `{name}` to be {expected}, but value {row} is {float(values[row]):.6g}.")
