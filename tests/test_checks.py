"""What is not a probability, a label or a weight is refused with a message that says which value, where, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from calibayes.checks import (
    check_predictions,
    check_probabilities,
    check_targets,
    check_weights,
    class_indices,
    integer,
    positive,
)
from calibayes.errors import CalibayesError, InvalidArgumentError, InvalidProbabilitiesError, InvalidTargetsError

GOOD = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.0, 0.0, 1.0]])


def spoiled(row: int, values: list[float]) -> Tensor:
    probs = GOOD.clone()
    probs[row] = torch.tensor(values)
    return probs


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        (spoiled(1, [-0.1, 0.6, 0.5]), r"row 1 is \[-0\.1, 0\.6, 0\.5\], which sums to 1\. If these are logits"),
        (spoiled(2, [0.3, 0.3, 0.3]), r"must sum to 1 \(within 0\.001\), but row 2 is \[0\.3, 0\.3, 0\.3\], .* 0\.9"),
        (spoiled(0, [0.0, 0.0, 0.0]), r"row 0 is \[0, 0, 0\], which sums to 0"),
        (spoiled(2, [0.5, 0.5, 0.002]), r"row 2 is \[0\.5, 0\.5, 0\.002\], which sums to 1\.002"),
        (spoiled(1, [0.5, float("nan"), 0.5]), r"NaN or infinite values: row 1 is \[0\.5, nan, 0\.5\]"),
        (spoiled(0, [float("inf"), 0.0, 0.0]), r"NaN or infinite values: row 0 is \[inf, 0, 0\]"),
        (spoiled(2, [float("-inf"), 1.0, 0.0]), r"NaN or infinite values: row 2 is \[-inf, 1, 0\]"),
        (spoiled(1, [float("inf"), float("-inf"), 1.0]), r"row 1 is \[inf, -inf, 1\]"),
        (
            torch.tensor([[3.2, -1.0, 0.5], [2.0, 0.1, 0.4]]),
            r"row 0 is \[3\.2, -1, 0\.5\].*If these are logits, pass `logits\.softmax",
        ),
        (torch.tensor([[3.2, 1.0, 0.5]]), r"row 0 .* sums to 4\.7\. If these are logits"),
        (GOOD.log_softmax(-1), "If these are logits"),
        (torch.full((2, 8), 0.25), r"row 0 is \[0\.25, 0\.25, 0\.25, 0\.25, 0\.25, …\], which sums to 2"),
        (GOOD.expand(2, 3, 3) * torch.tensor([1.0, 2.0])[:, None, None], r"row \[1, 0\] is \[1\.4, 0\.4, 0\.2\]"),
        (GOOD[0], r"shape \[\.\.\., n, K\] .* but got \[3\]"),
        (torch.ones(4, 1), r"two classes, but got \[4, 1\]\. For two classes given as one column p, stack \(1 - p, p\)"),
        (torch.ones(0, 3), r"at least one example .* but got \[0, 3\]"),
        (torch.tensor(0.5), r"but got \[\]"),
        (torch.tensor([[1, 0], [0, 1]]), "floating-point type, but got torch.int64"),
        (torch.tensor([[True, False]]), "floating-point type, but got torch.bool"),
        (GOOD.numpy(), "torch.Tensor, but got ndarray"),
        (GOOD.tolist(), "torch.Tensor, but got list"),
        (None, "torch.Tensor, but got NoneType"),
    ],
)
def test_not_probabilities(probs: Any, message: str) -> None:
    with pytest.raises(InvalidProbabilitiesError, match=message):
        check_probabilities(probs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("classes", [2, 10, 1000, 30_000])
def test_what_softmax_gives_passes_in_every_type(dtype: torch.dtype, classes: int) -> None:
    for scale in (0.0, 1.0, 30.0):
        logits = (torch.randn(8, classes) * scale).to(dtype)
        check_probabilities(logits.softmax(-1))
        check_probabilities(logits.float().softmax(-1).to(dtype))


def test_the_inputs_are_left_as_they_are() -> None:
    probs = GOOD.clone().requires_grad_()
    check_predictions(probs, torch.tensor([0, 1, 2]), torch.ones(3))
    assert torch.equal(probs, GOOD)
    assert probs.requires_grad


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (torch.tensor([0, 1, 3]), r"Labels must lie in 0 … 2 for 3 classes, but label 2 is 3"),
        (torch.tensor([0, -1, 2]), r"label 1 is -1"),
        (torch.tensor([0, -100, 2]), r"label 1 is -100"),
        (torch.tensor([0.0, 1.0, 2.0]), r"integer type, but got torch\.float32.*`targets\.long\(\)`"),
        (torch.tensor([True, False, True]), r"integer type, but got torch\.bool"),
        (torch.eye(3), r"but got torch\.float32\. One-hot labels: pass `targets\.argmax\(-1\)`"),
        (torch.eye(3, dtype=torch.long), r"but got \[3, 3\]\. One-hot labels: pass `targets\.argmax\(-1\)`"),
        (torch.tensor([0, 1]), r"Expected `targets` of shape \[3\] .*, but got \[2\]\.$"),
        (torch.tensor([[0], [1], [2]]), r"but got \[3, 1\]"),
        (torch.tensor(1), r"but got \[\]"),
        (np.array([0, 1, 2]), "torch.Tensor, but got ndarray"),
        ([0, 1, 2], "torch.Tensor, but got list"),
        (None, "torch.Tensor, but got NoneType"),
    ],
)
def test_not_labels(targets: Any, message: str) -> None:
    with pytest.raises(InvalidTargetsError, match=message):
        check_predictions(GOOD, targets)


def test_labels_of_leading_axes() -> None:
    probs = GOOD.expand(2, 3, 3)
    check_targets(torch.tensor([0, 1, 2]), probs)
    check_targets(torch.tensor([[0, 1, 2], [2, 1, 0]]), probs)
    with pytest.raises(InvalidTargetsError, match=r"label \[1, 0\] is 7"):
        check_targets(torch.tensor([[0, 1, 2], [7, 1, 0]]), probs)
    with pytest.raises(InvalidTargetsError, match=r"shape \[2, 3\] or \[3\] .*, but got \[2\]"):
        check_targets(torch.tensor([0, 1]), probs)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integer_labels_of_every_width(dtype: torch.dtype) -> None:
    targets = torch.tensor([0, 1, 2], dtype=dtype)
    check_targets(targets, GOOD)
    assert class_indices(targets).dtype == torch.int64
    assert class_indices(targets).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "weights", [torch.tensor([0, 2, 1]), torch.tensor([True, False, True]), torch.tensor([1e-30, 0.0, 1.0])]
)
def test_weights_may_be_counts_or_a_mask(weights: Tensor) -> None:
    check_weights(weights, GOOD)
    check_weights(weights, GOOD.expand(2, 3, 3))


def test_every_batch_needs_a_weight() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one positive weight in every batch"):
        check_weights(torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), GOOD.expand(2, 3, 3))
    with pytest.raises(InvalidArgumentError, match=r"weight \[1, 2\] is -3"):
        check_weights(torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, -3.0]]), GOOD.expand(2, 3, 3))


@pytest.mark.parametrize("value", [1, 0.5, 1e-300, np.float64(2.0)])
def test_positive(value: float) -> None:
    found = positive("width", value)
    assert type(found) is float
    assert found == value


@pytest.mark.parametrize("value", [0, -1, 0.0, float("nan"), float("inf"), True, "1", None, 1j, torch.tensor(1.0)])
def test_not_positive(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="Expected `width` to be a positive finite number, but got"):
        positive("width", value)


def test_errors_are_of_one_family_and_value_errors() -> None:
    for error in (InvalidArgumentError, InvalidProbabilitiesError, InvalidTargetsError):
        assert issubclass(error, CalibayesError)
        assert issubclass(error, ValueError)


def test_an_integer_that_is_too_small_is_not_called_no_integer() -> None:
    with pytest.raises(InvalidArgumentError, match="Expected `cv` to be an integer of at least 2, but got 1"):
        integer("cv", 1, least=2)
    with pytest.raises(InvalidArgumentError, match=r"Expected `seed` to be an integer, but got 0\.5"):
        integer("seed", 0.5)
