"""The expected calibration error against hand-computed values, an independent loop, and closed forms."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from calibayes.metrics import ece


def oracle(probs: npt.NDArray[np.float64], targets: npt.NDArray[np.int64], bins: int) -> float:
    """One example and one bin at a time, in Python numbers."""
    members: list[list[tuple[float, float]]] = [[] for _ in range(bins)]
    for row, target in zip(probs.tolist(), targets.tolist(), strict=True):
        best = max(row)
        for m in range(bins):
            if (best > m / bins or m == 0) and (best <= (m + 1) / bins or m == bins - 1):
                members[m].append((best, float(row.index(best) == target)))
                break
    total = 0.0
    for group in members:
        if group:
            gap = math.fsum(c for _, c in group) / len(group) - math.fsum(r for r, _ in group) / len(group)
            total += len(group) / len(probs) * abs(gap)
    return total


def two_classes(confidences: Tensor) -> Tensor:
    return torch.stack([confidences, 1 - confidences], -1)


def test_confidence_one_shares_the_last_bin() -> None:
    # Right at 0.95 and wrong at 1.0: together |0.975 - 0.5| = 0.475. A separate bin for 1.0 would give 0.525.
    assert ece(torch.tensor([[0.95, 0.05], [1.0, 0.0]]), torch.tensor([0, 1])) == pytest.approx(0.475, abs=1e-7)


@pytest.mark.parametrize("right", [0, 1, 7, 10])
def test_always_certain(right: int) -> None:
    probs = torch.eye(3)[torch.zeros(10, dtype=torch.long)]
    targets = torch.ones(10, dtype=torch.long)
    targets[:right] = 0
    assert ece(probs, targets) == pytest.approx(1 - right / 10, abs=1e-15)


def test_edges_decide_who_is_averaged_with_whom() -> None:
    # 0.6 closes (0.4, 0.6] and 0.61 opens (0.6, 0.8]: gaps 0.4 and 0.61, which a shared bin would average to 0.105.
    probs = two_classes(torch.tensor([0.6, 0.61], dtype=torch.float64))
    assert ece(probs, torch.tensor([0, 1]), bins=5) == pytest.approx((0.4 + 0.61) / 2, abs=1e-12)
    # 0.6 and 0.59 share (0.4, 0.6].
    probs = two_classes(torch.tensor([0.6, 0.59], dtype=torch.float64))
    assert ece(probs, torch.tensor([0, 1]), bins=5) == pytest.approx(0.095, abs=1e-12)


def test_float32_and_float64_agree_on_edges() -> None:
    confidences = torch.arange(8, 16, dtype=torch.float64) / 15
    targets = torch.tensor([0, 1] * 4)
    exact = ece(two_classes(confidences), targets)
    assert ece(two_classes(confidences.float()), targets) == pytest.approx(exact, abs=1e-6)


def test_a_calibrated_model_has_a_small_error_that_shrinks_with_n() -> None:
    generator = torch.Generator().manual_seed(1)
    errors = []
    for n in (1_000, 100_000):
        probs = (2 * torch.randn(n, 4, generator=generator, dtype=torch.float64)).softmax(-1)
        targets = torch.multinomial(probs, 1, generator=generator)[:, 0]
        errors.append(ece(probs, targets))
    # Noise alone gives about sqrt(2/pi) * mean sd of a bin's accuracy, of the order sqrt(bins / n).
    assert errors[0] < 0.06
    assert errors[1] < 0.006


def test_a_known_miscalibration_is_detected() -> None:
    # Confidence is uniform on [0.6, 1] and accuracy is confidence - 0.2 everywhere: the ECE is 0.2.
    generator = torch.Generator().manual_seed(2)
    confidences = 0.6 + 0.4 * torch.rand(200_000, generator=generator, dtype=torch.float64)
    wrong = torch.rand(200_000, generator=generator, dtype=torch.float64) > confidences - 0.2
    assert ece(two_classes(confidences), wrong.long()) == pytest.approx(0.2, abs=0.005)


def test_over_and_underconfidence_do_not_cancel_across_bins() -> None:
    probs = two_classes(torch.tensor([0.55, 0.55, 0.95, 0.95], dtype=torch.float64))
    targets = torch.tensor([0, 0, 1, 0])  # gaps 0.45 (underconfident) and 0.45 (overconfident)
    assert ece(probs, targets) == pytest.approx(0.45, abs=1e-12)
    assert ece(probs, targets, bins=1) == pytest.approx(0.0, abs=1e-12)


@st.composite
def predictions(draw: st.DrawFn) -> tuple[Tensor, Tensor, int]:
    """Rows of many shapes: smooth, tied, one-hot, and with zeros."""
    n = draw(st.integers(1, 60))
    classes = draw(st.sampled_from([2, 3, 7, 20, 1000]))
    kind = draw(st.sampled_from(["smooth", "sharp", "tied", "one-hot", "zeros", "mixed"]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    logits = torch.randn(n, classes, generator=generator, dtype=torch.float64)
    rows = {
        "smooth": logits.softmax(-1),
        "sharp": (30 * logits).softmax(-1),
        "tied": torch.full_like(logits, 1 / classes),
        "one-hot": torch.nn.functional.one_hot(logits.argmax(-1), classes).double(),
        "zeros": torch.where(logits > 0.5, logits, -torch.inf).nan_to_num(neginf=-1e9).softmax(-1),
    }
    if kind == "mixed":
        pick = torch.randint(len(rows), (n,), generator=generator)
        probs = torch.stack(list(rows.values()))[pick, torch.arange(n)]
    else:
        probs = rows[kind]
    targets = torch.randint(classes, (n,), generator=generator)
    return probs, targets, draw(st.integers(1, 40))


@given(predictions())
@settings(max_examples=80)
def test_equals_the_loop(case: tuple[Tensor, Tensor, int]) -> None:
    probs, targets, bins = case
    value = ece(probs, targets, bins)
    assert value == pytest.approx(oracle(probs.numpy(), targets.numpy(), bins), abs=1e-12)
    assert 0 <= value <= 1


@given(predictions())
@settings(max_examples=40)
def test_order_of_examples_does_not_matter_and_numpy_equals_torch(case: tuple[Tensor, Tensor, int]) -> None:
    probs, targets, bins = case
    value = ece(probs, targets, bins)
    assert ece(probs.flip(0), targets.flip(0), bins) == pytest.approx(value, abs=1e-12)
    assert ece(probs.numpy(), targets.numpy(), bins) == value


def test_repeating_the_data_changes_nothing() -> None:
    generator = torch.Generator().manual_seed(3)
    probs = torch.randn(50, 5, generator=generator).softmax(-1)
    targets = torch.randint(5, (50,), generator=generator)
    assert ece(probs.repeat(3, 1), targets.repeat(3)) == pytest.approx(ece(probs, targets), abs=1e-12)
