"""What comes in: numpy in all its forms, and named errors for what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from calibayes.errors import InvalidProbabilitiesError, InvalidTargetsError
from calibayes.metrics import accuracy, brier, ece, evaluate, nll, reliability_bins
from calibayes.metrics.arrays import as_predictions

FUNCTIONS = [accuracy, nll, brier, ece, evaluate, reliability_bins]
PROBS = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])
TARGETS = np.array([0, 2, 2])


def test_numpy_arrays_are_shared_not_copied() -> None:
    probs, targets = as_predictions(PROBS, TARGETS)
    assert probs.data_ptr() == PROBS.ctypes.data
    assert targets.data_ptr() == TARGETS.ctypes.data


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "form",
    [
        read_only,
        lambda a: a[::-1][::-1],
        lambda a: np.flip(np.flip(a.copy(), 0).copy(), 0),
        np.asfortranarray,
        lambda a: a.astype(a.dtype.newbyteorder(">")),
        lambda a: np.repeat(a, 2, axis=0)[::2],
    ],
    ids=["read-only", "view", "negative strides", "Fortran", "big-endian", "strided"],
)
def test_every_kind_of_numpy_array_gives_the_same_scores(form: Any) -> None:
    assert evaluate(form(PROBS), form(TARGETS), bins=7) == evaluate(torch.tensor(PROBS), torch.tensor(TARGETS), bins=7)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64])
def test_every_integer_type_of_labels(dtype: Any) -> None:
    assert evaluate(PROBS, TARGETS.astype(dtype)) == evaluate(PROBS, TARGETS)


def test_gradients_are_neither_needed_nor_followed() -> None:
    logits = torch.zeros(2, 3, requires_grad=True)
    assert accuracy(logits.softmax(-1), torch.tensor([0, 1])) == 0.5
    assert logits.grad is None


BAD: list[tuple[Any, Any, type[Exception], str]] = [
    (PROBS.tolist(), TARGETS, InvalidProbabilitiesError, "`probs` .* but got list"),
    (PROBS, TARGETS.tolist(), InvalidTargetsError, "`targets` .* but got list"),
    (PROBS[:, 0], TARGETS, InvalidProbabilitiesError, r"shape \[n, K\], but got \[3\]"),
    (PROBS[None], TARGETS[None], InvalidProbabilitiesError, r"shape \[n, K\], but got \[1, 3, 3\]"),
    (PROBS[:0], TARGETS[:0], InvalidProbabilitiesError, r"\[0, 3\]"),
    (PROBS[:, :1] * 0 + 1, TARGETS * 0, InvalidProbabilitiesError, r"\[3, 1\]"),
    (PROBS * 0.9, TARGETS, InvalidProbabilitiesError, "sums to 0.9"),
    (PROBS - 0.2, TARGETS, InvalidProbabilitiesError, "logits"),
    (np.where(PROBS > 0.65, np.nan, PROBS), TARGETS, InvalidProbabilitiesError, "row 0"),
    (PROBS.astype(str), TARGETS, InvalidProbabilitiesError, "dtype <U"),
    (PROBS.round().astype(int), TARGETS, InvalidProbabilitiesError, "int64"),
    (PROBS, TARGETS[:2], InvalidTargetsError, r"\[2\]"),
    (PROBS, TARGETS + 1, InvalidTargetsError, "label 1 is 3"),
    (PROBS, TARGETS - 1, InvalidTargetsError, "label 0 is -1"),
    (PROBS, TARGETS.astype(float), InvalidTargetsError, "float64"),
    (PROBS, TARGETS > 0, InvalidTargetsError, "bool"),
    (PROBS, np.array(["cat", "dog", "cat"]), InvalidTargetsError, "return_inverse"),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("probs", "targets", "error", "message"), BAD)
def test_bad_input_has_a_named_error(function: Any, probs: Any, targets: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        function(probs, targets)


@pytest.mark.parametrize("function", FUNCTIONS[:-1])
def test_the_check_can_be_switched_off_and_changes_no_value(function: Any) -> None:
    assert function(PROBS, TARGETS, check=False) == function(PROBS, TARGETS)
    function(PROBS * 0.9, TARGETS, check=False)  # rows that sum to 0.9 pass unseen
    with pytest.raises(InvalidProbabilitiesError):
        function(PROBS * 0.9, TARGETS)
