"""Example weights of the calibration measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.calibration.measured import KERNEL_MEASURES, MEASURES, batch
from torch import Tensor

from calibayes.calibration import dece, wmmce
from calibayes.errors import InvalidArgumentError


@pytest.mark.parametrize("measure", MEASURES)
def test_integer_weights_are_copies(measure: Callable[..., Tensor]) -> None:
    probs, targets = batch(30, 4)
    for low in (1, 2):
        copies = torch.randint(low, 5, (30,))
        copied = measure(probs.repeat_interleave(copies, 0), targets.repeat_interleave(copies), scores="hard")
        assert float(measure(probs, targets, scores="hard", weights=copies)) == pytest.approx(float(copied), rel=1e-12)


@pytest.mark.parametrize("right", [0, 1])
def test_a_light_example_alone_in_its_group_is_a_whole_group(right: int) -> None:
    probs, _ = batch(8, 4)
    targets = probs.argmin(-1) if right else probs.argmax(-1)
    targets[0] = probs[0].argmax() if right else probs[0].argmin()
    copies = torch.tensor([1] + [50] * 7)
    copied = wmmce(probs.repeat_interleave(copies, 0), targets.repeat_interleave(copies), scores="hard")
    assert float(wmmce(probs, targets, scores="hard", weights=copies)) == pytest.approx(float(copied), rel=1e-12)


@pytest.mark.parametrize("normalization", ["paper", "reference"])
@pytest.mark.parametrize("scores", ["soft", "hard"])
@pytest.mark.parametrize("measure", KERNEL_MEASURES)
def test_only_ratios_of_weights_matter(measure: Callable[..., Tensor], scores: str, normalization: str) -> None:
    probs, targets = batch(30, 4)
    options = {"scores": scores, "normalization": normalization}
    weights = torch.rand(30, dtype=torch.float64)
    expected = float(measure(probs, targets, weights=weights, **options))
    for scale in (1e-30, 1e-3, 7.0, 1e12):
        assert float(measure(probs, targets, weights=scale * weights, **options)) == pytest.approx(expected, rel=1e-10)
    # So equal weights are no weights.
    plain = float(measure(probs, targets, **options))
    assert float(measure(probs, targets, weights=torch.full((30,), 0.01), **options)) == pytest.approx(plain, rel=1e-10)


def test_only_ratios_of_weights_matter_to_dece() -> None:
    probs, targets = batch(30, 4)
    weights = torch.rand(30, dtype=torch.float64)
    assert float(dece(probs, targets, weights=1e-3 * weights)) == pytest.approx(float(dece(probs, targets, weights=weights)))


@pytest.mark.parametrize("scores", ["soft", "hard"])
@pytest.mark.parametrize("measure", MEASURES)
def test_weight_zero_leaves_an_example_out(measure: Callable[..., Tensor], scores: str) -> None:
    probs, targets = batch(30, 4)
    kept = torch.rand(30) < 0.5
    grads, values = [], []
    for mask, weights in ((torch.ones_like(kept), kept), (kept, None)):
        logits = probs.log()[mask].requires_grad_()
        value = measure(logits.softmax(-1), targets[mask], scores=scores, weights=weights)
        value.backward()
        assert logits.grad is not None
        values.append(float(value.detach()))
        grads.append(logits.grad)
    assert values[0] == pytest.approx(values[1], rel=1e-10)
    torch.testing.assert_close(grads[0][kept], grads[1], rtol=1e-9, atol=1e-12)
    assert not grads[0][~kept].any()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.tensor([1.0, -0.5, 1.0]), r"weight 1 is -0\.5"),
        (torch.tensor([1.0, 1.0, float("nan")]), "weight 2 is nan"),
        (torch.tensor([float("inf"), 1.0, 1.0]), "weight 0 is inf"),
        (torch.zeros(3), "at least one positive weight"),
        (torch.ones(4), r"of shape \[3\] or \[3\], but got \[4\]"),
        (torch.ones(3, dtype=torch.complex64), "real numbers, but got torch.complex64"),
        ([1.0, 1.0, 1.0], "but got list"),
    ],
)
@pytest.mark.parametrize("measure", MEASURES)
def test_bad_weights(measure: Callable[..., Tensor], weights: Any, message: str) -> None:
    probs, targets = batch(3, 4)
    with pytest.raises(InvalidArgumentError, match=message):
        measure(probs, targets, weights=weights)
