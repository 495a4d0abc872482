"""Probabilities, labels and confidences from torch or numpy as checked CPU tensors in float64."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from calibayes.checks import check_probabilities
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError
from calibayes.metrics.prediction_arrays import Array, as_predictions
from calibayes.numpy_arrays import from_numpy
from calibayes.predictive import Predictive

__all__ = [
    "ActingWarning",
    "as_tensor",
    "coarser_type",
    "exceeds",
    "read_correct",
    "read_features",
    "read_labelled",
    "read_numbers",
    "read_probabilities",
]


_ROUNDING = 1e-5  # a mean of softmaxes in float32 may be above 1 by this


class ActingWarning(UserWarning):
    """A guarantee that says less than was asked for, such as for lack of calibration examples; the message says what to do."""


def read_probabilities(probs: Array | Predictive, name: str = "probs") -> Tensor:
    """``probs [n, K]``, or one column for two classes, or a `Predictive`, as checked probabilities in float64."""
    values = as_tensor(name, probs.probs if isinstance(probs, Predictive) else probs)
    if values.dim() == 1 or (values.dim() == 2 and values.shape[1] == 1):
        column = values.reshape(-1)
        values = torch.stack((1 - column, column), -1)
    if values.dim() != 2:
        raise InvalidProbabilitiesError(
            f"Expected `{name}` of shape [n, K], or [n] for two classes, but got {list(values.shape)}."
        )
    check_probabilities(values)
    return values.double()


def read_labelled(probs: Array | Predictive, labels: Array) -> tuple[Tensor, Tensor]:
    """Checked probabilities ``[n, K]`` in float64 and their labels ``[n]``."""
    predictions = as_predictions(probs.probs if isinstance(probs, Predictive) else probs, labels)
    return predictions.probs.double(), predictions.targets


def read_numbers(name: str, values: Array, *, unit: bool = False) -> Tensor:
    """One finite number per example in float64, within 0 … 1 (but for rounding) if ``unit``."""
    numbers = as_tensor(name, values)
    if numbers.dim() != 1 or not len(numbers):
        raise InvalidArgumentError(f"Expected `{name}` to hold one number per example, but its shape is {list(numbers.shape)}.")
    numbers = numbers.double()
    if unit:
        numbers = torch.where((numbers > 1) & (numbers < 1 + _ROUNDING), 1.0, numbers)
    fine = numbers.isfinite() & ((numbers >= 0) & (numbers <= 1) if unit else True)
    if not bool(fine.all()):
        row = int((~fine).nonzero()[0])
        kind = "lie between 0 and 1" if unit else "be finite"
        raise InvalidArgumentError(f"Expected `{name}` to {kind}, but number {row} is {numbers[row].item()}.")
    return numbers


def read_correct(correct: Array, examples: int) -> Tensor:
    """Whether each decision was right, as booleans, from booleans or zeros and ones."""
    values = as_tensor("correct", correct)
    if values.shape != (examples,):
        raise InvalidArgumentError(f"Expected `correct` of shape [{examples}], but got {list(values.shape)}.")
    fine = (values == 0) | (values == 1)
    if not bool(fine.all()):
        row = int((~fine).nonzero()[0])
        raise InvalidArgumentError(f"Expected `correct` to hold zeros and ones, but number {row} is {values[row].item()}.")
    return values.bool()


def coarser_type(*arrays: Array) -> torch.dtype:
    """The floating-point type of the fewest digits among arrays, in which numbers of all of them can be compared."""
    types = [each.dtype for each in (as_tensor("values", array) for array in arrays) if each.is_floating_point()]
    return max(types, key=lambda each: torch.finfo(each).eps, default=torch.float64)


def exceeds(values: Tensor, thresholds: Tensor, dtype: torch.dtype) -> Tensor:
    """True where ``values``, which came as ``dtype``, lie above ``thresholds``, both in float64.

    The float32 of 0.6 lies above 0.6, and 0.7 lies above the float32 of 0.7: where many examples share a number, all of them
    would change sides. So a threshold is rounded to the type of the values, and values to float32 where a threshold is one.
    """
    rounded = thresholds.to(dtype).double() if dtype.is_floating_point else thresholds
    single = thresholds == thresholds.float().double()
    return torch.where(single, values.float().double(), values) > rounded


def read_features(features: Array) -> Tensor:
    """Features ``[n, d]`` in float64, all finite."""
    rows = as_tensor("features", features).double()
    if rows.dim() == 2 and rows.numel() and bool(rows.isfinite().all()):
        return rows
    place = ""
    if rows.dim() == 2 and rows.numel():
        row, column = (~rows.isfinite()).nonzero()[0].tolist()
        place = f" with {rows[row, column].item()} in row {row}, column {column}"
    raise InvalidArgumentError(f"Expected finite `features` of shape [n, d], but got shape {list(rows.shape)}{place}.")


def as_tensor(name: str, array: Array) -> Tensor:
    """A tensor or an array of numbers as a detached CPU tensor."""
    if isinstance(array, np.ndarray) and array.dtype.kind in "fiub":
        return from_numpy(array)
    if not isinstance(array, Tensor):
        kind = f"dtype {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
        hint = "" if isinstance(array, np.ndarray) else " Lists and pandas objects: pass `numpy.asarray(...)`."
        raise InvalidArgumentError(
            f"Expected `{name}` to be a torch.Tensor or a numpy.ndarray of numbers, but got {kind}.{hint}"
        )
    return array.detach().cpu()
