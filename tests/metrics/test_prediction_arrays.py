"""The input of metrics: every kind of numpy array, and named errors for invalid ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from calibayes import metrics
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError, InvalidTargetsError
from calibayes.metrics import accuracy, evaluate
from calibayes.metrics.prediction_arrays import as_predictions

FUNCTIONS = [
    getattr(metrics, name)
    for name in metrics.__all__
    if name[0].islower() and name not in ("differences", "confidence_interval")
]
TABLES = ("reliability_bins", "risk_coverage", "evaluate", "class_rates", "confusion_matrix")
TWO_CLASSES = ("roc_auc", "roc_auc_interval")
NUMBERS = [function for function in FUNCTIONS if function.__name__ not in (*TABLES, *TWO_CLASSES)]
PROBS = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])
TARGETS = np.array([0, 2, 2])


def test_numpy_arrays_are_shared_not_copied() -> None:
    predictions = as_predictions(PROBS, TARGETS)
    assert predictions.probs.data_ptr() == PROBS.ctypes.data
    assert predictions.targets.data_ptr() == TARGETS.ctypes.data


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
    expected = evaluate(torch.tensor(PROBS), torch.tensor(TARGETS), bins=7, replicates=50)
    assert evaluate(form(PROBS), form(TARGETS), bins=7, replicates=50) == expected


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64])
def test_every_integer_type_of_labels(dtype: Any) -> None:
    assert evaluate(PROBS, TARGETS.astype(dtype), intervals=False) == evaluate(PROBS, TARGETS, intervals=False)


def test_gradients_are_neither_needed_nor_followed() -> None:
    logits = torch.zeros(2, 3, requires_grad=True)
    assert accuracy(logits.softmax(-1), torch.tensor([0, 1])) == 0.5
    assert logits.grad is None


BAD: list[tuple[Any, Any, type[Exception], str]] = [
    (PROBS.tolist(), TARGETS, InvalidProbabilitiesError, "`probs` .* but got list"),
    (PROBS, TARGETS.tolist(), InvalidTargetsError, "`targets` .* but got list"),
    (PROBS[:, 0], TARGETS, InvalidTargetsError, r"0 … 1 for 2 classes, but label 1 is 2"),
    (PROBS[:, 0] * 2, TARGETS.clip(0, 1), InvalidProbabilitiesError, r"class 1, but row 0 is 1.4.*sigmoid"),
    (PROBS[:, 0] * np.nan, TARGETS.clip(0, 1), InvalidProbabilitiesError, r"row 0 is nan"),
    (PROBS[None], TARGETS[None], InvalidProbabilitiesError, r"shape \[n, K\].* but got \[1, 3, 3\]"),
    (PROBS[:0], TARGETS[:0], InvalidProbabilitiesError, r"\[0, 3\]"),
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


@pytest.mark.parametrize(("probs", "targets", "error", "message"), BAD)
def test_bad_input_has_a_named_error(probs: Any, targets: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        as_predictions(probs, targets)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_checks_its_input(function: Any) -> None:
    with pytest.raises(InvalidProbabilitiesError, match=r"sums to 0\.9"):
        function(PROBS * 0.9, TARGETS)
    with pytest.raises(InvalidTargetsError, match="label 1 is 3"):
        function(PROBS, TARGETS + 1)


@pytest.mark.parametrize("function", NUMBERS)
def test_the_check_can_be_switched_off_and_changes_no_value(function: Any) -> None:
    assert repr(function(PROBS, TARGETS, check=False)) == repr(function(PROBS, TARGETS))
    function(PROBS * 0.9, TARGETS, check=False)  # rows that sum to 0.9 are not noticed


@pytest.mark.parametrize("function", NUMBERS)
def test_one_column_is_the_probability_of_class_one(function: Any) -> None:
    column, targets = np.array([0.2, 0.9, 0.6, 0.55, 0.1]), np.array([0, 1, 0, 1, 1])
    expected = function(np.stack((1 - column, column), -1), targets)
    assert repr(function(column, targets)) == repr(expected)
    assert repr(function(torch.tensor(column)[:, None], torch.tensor(targets))) == repr(expected)


@pytest.mark.parametrize("function", NUMBERS)
def test_equal_weights_change_nothing_and_zero_weights_leave_out(function: Any) -> None:
    generator = np.random.default_rng(0)
    probs, targets = generator.dirichlet(np.ones(4), 60), generator.integers(4, size=60)
    plain = function(probs, targets)
    assert function(probs, targets, weights=np.full(60, 0.37)) == pytest.approx(plain, rel=1e-9, abs=1e-12)
    more, other = np.concatenate((probs, probs[::-1])), np.concatenate((targets, targets))
    weights = np.concatenate((np.ones(60), np.zeros(60)))
    assert function(more, other, weights=weights) == pytest.approx(plain, rel=1e-9, abs=1e-12)


REPLICATED = [f for f in NUMBERS if f.__name__ not in ("kce_p_value", "kce_squared", "ece_squared_debiased", "aurc")]


@pytest.mark.parametrize("function", REPLICATED)
def test_a_weight_of_two_is_an_example_twice(function: Any) -> None:
    generator = np.random.default_rng(1)
    probs, targets = generator.dirichlet(np.ones(4), 40), generator.integers(4, size=40)
    weights = generator.integers(1, 4, size=40)
    twice = function(np.repeat(probs, weights, 0), np.repeat(targets, weights))
    assert function(probs, targets, weights=weights) == pytest.approx(twice, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.array([1.0, -1.0, 1.0]), "weight 1 is -1"),
        (np.array([1.0, np.nan, 1.0]), "weight 1 is nan"),
        (np.zeros(3), "at least one positive weight"),
        (np.ones(2), r"shape \[3\].*but got \[2\]"),
        (np.array(["a", "b", "c"]), "numbers, but got dtype <U1"),
        ("111", "a torch.Tensor or a numpy.ndarray, but got str"),
    ],
)
def test_bad_weights_have_a_named_error(weights: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        evaluate(PROBS, TARGETS, weights=weights)
