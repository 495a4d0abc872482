"""Confidence and correctness against eqs (rhat), (chat) and (Rhat) written out one number at a time, and their limits."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from calibayes.calibration import confidence, correctness
from calibayes.errors import InvalidArgumentError, InvalidProbabilitiesError, InvalidTargetsError


def batch(n: int, classes: int) -> tuple[Tensor, Tensor]:
    return torch.randn(n, classes, dtype=torch.float64).mul(2).softmax(-1), torch.randint(classes, (n,))


def smoothed_maximum(row: list[float], tau: float) -> float:
    total = math.fsum(math.exp(p / tau) for p in row)
    return math.fsum(p * math.exp(p / tau) / total for p in row)


def smoothed_correctness(row: list[float], target: int, tau: float) -> float:
    rank = 1.0
    for other, p in enumerate(row):
        if other != target:
            rank += 1 / (1 + math.exp((row[target] - p) / tau))
    return max(0.0, 2 - rank)


@pytest.mark.parametrize("tau", [0.01, 0.1, 2.0])
@pytest.mark.parametrize("classes", [2, 5, 30])
def test_equations_term_by_term(classes: int, tau: float) -> None:
    probs, targets = batch(40, classes)
    rows = probs.tolist()
    r = [smoothed_maximum(row, tau) for row in rows]
    c = [smoothed_correctness(row, target, tau) for row, target in zip(rows, targets.tolist(), strict=True)]
    torch.testing.assert_close(confidence(probs, tau), torch.tensor(r, dtype=torch.float64), rtol=1e-12, atol=0)
    torch.testing.assert_close(correctness(probs, targets, tau), torch.tensor(c, dtype=torch.float64), rtol=0, atol=1e-12)


def test_hard_scores() -> None:
    probs, targets = batch(200, 4)
    rows = probs.tolist()
    assert confidence(probs).tolist() == [max(row) for row in rows]
    right = [float(row.index(max(row)) == target) for row, target in zip(rows, targets.tolist(), strict=True)]
    assert correctness(probs, targets).tolist() == right


def test_soft_scores_tend_to_the_hard_ones() -> None:
    probs, targets = batch(200, 6)
    two = probs.topk(2).values
    clear = (two[:, 0] - two[:, 1]) > 0.02
    probs, targets = probs[clear], targets[clear]
    r, c = confidence(probs), correctness(probs, targets)
    errors = [
        (float((confidence(probs, tau) - r).abs().max()), float((correctness(probs, targets, tau) - c).abs().max()))
        for tau in (0.1, 0.01, 0.001)
    ]
    for soft, softer in zip(errors[1:], errors[:-1], strict=True):
        assert soft[0] < softer[0]
        assert soft[1] < softer[1]
    assert max(errors[-1]) < 1e-7


def test_hard_confidence_moves_the_decided_class_alone() -> None:
    probs, _ = batch(50, 5)
    probs[0] = torch.tensor([0.1, 0.3, 0.3, 0.2, 0.1])  # a tie: one of the two, the one that is decided
    probs.requires_grad_()
    confidence(probs).sum().backward()
    assert probs.grad is not None
    assert torch.equal(probs.grad, torch.nn.functional.one_hot(probs.argmax(-1), 5).double())


def test_hard_correctness_has_no_gradient() -> None:
    probs, targets = batch(10, 3)
    assert not correctness(probs.requires_grad_(), targets).requires_grad


@pytest.mark.parametrize("tau", [0.05, 0.5])
def test_gradients_of_the_soft_scores(tau: float) -> None:
    probs, targets = batch(6, 4)
    logits = probs.log().requires_grad_()
    assert torch.autograd.gradcheck(lambda logits: confidence(logits.softmax(-1), tau), logits)
    c = correctness(probs, targets, tau)
    clear = (c > 1e-3) | (c == 0)  # away from the kink of the ReLU
    assert torch.autograd.gradcheck(lambda logits: correctness(logits.softmax(-1), targets, tau)[clear], logits)


def test_soft_confidence_moves_every_class() -> None:
    probs = torch.tensor([[0.4, 0.35, 0.25]], dtype=torch.float64, requires_grad=True)
    confidence(probs, 0.1).sum().backward()
    assert probs.grad is not None
    assert bool(probs.grad.all())


def test_bounds() -> None:
    probs, targets = batch(300, 20)
    for tau in (1e-4, 1e-3, 1e-2, 1.0):
        r, c = confidence(probs, tau), correctness(probs, targets, tau)
        assert bool((r <= probs.amax(-1) * (1 + 1e-12)).all())
        assert bool((r >= 1 / 20 - 1e-12).all())
        assert bool(((c >= 0) & (c <= 1)).all())


def test_soft_correctness_fades_with_many_classes() -> None:
    def right_at(top: float, classes: int) -> Tensor:
        rest = torch.full((1, classes - 1), (1 - top) / (classes - 1), dtype=torch.float64)
        return torch.cat([torch.full((1, 1), top, dtype=torch.float64), rest], -1)

    zero = torch.tensor([0])
    probs = right_at(0.05, 1000)
    assert correctness(probs, zero).item() == 1.0
    assert correctness(probs, zero, tau=0.01).item() == 0.0
    assert correctness(probs, zero, tau=0.001).item() == pytest.approx(1.0, abs=1e-9)
    assert correctness(right_at(0.9, 1000), zero, tau=0.01).item() == pytest.approx(1.0, abs=1e-9)
    # A network that has learned nothing, K = 20: few scores are above zero.
    torch.manual_seed(0)
    probs, targets = torch.randn(20_000, 20).mul(0.1).softmax(-1), torch.randint(20, (20_000,))
    assert float((correctness(probs, targets, tau=0.01) > 0).float().mean()) < 0.06


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    probs, targets = batch(30, 5)
    probs = probs.to(dtype)
    for tau in (None, 0.01):
        r, c = confidence(probs, tau), correctness(probs, targets, tau)
        assert r.dtype == c.dtype == torch.float32
        assert torch.equal(r, confidence(probs.float(), tau, check=False))
        assert torch.equal(c, correctness(probs.float(), targets, tau, check=False))


def test_leading_axes_and_shared_targets() -> None:
    probs = torch.randn(3, 7, 4).softmax(-1)
    targets = torch.randint(4, (7,))
    for tau in (None, 0.1):
        together = correctness(probs, targets, tau)
        assert torch.equal(together, torch.stack([correctness(sample, targets, tau) for sample in probs]))
        assert torch.equal(together, correctness(probs, targets.expand(3, 7), tau))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_labels_of_any_integer_type(dtype: torch.dtype) -> None:
    probs, targets = batch(20, 5)
    for tau in (None, 0.1):
        assert torch.equal(correctness(probs, targets.to(dtype), tau), correctness(probs, targets, tau))


@pytest.mark.parametrize("tau", [0, -1.0, float("nan"), float("inf"), "0.1", True])
def test_bad_temperatures(tau: float) -> None:
    probs, targets = batch(3, 3)
    with pytest.raises(InvalidArgumentError, match="`tau` to be a positive finite number"):
        confidence(probs, tau)
    with pytest.raises(InvalidArgumentError, match="`tau` to be a positive finite number"):
        correctness(probs, targets, tau)


def test_checks_can_be_left_out() -> None:
    logits, targets = torch.tensor([[3.0, -1.0]]), torch.tensor([0])
    with pytest.raises(InvalidProbabilitiesError, match="If these are logits"):
        confidence(logits)
    with pytest.raises(InvalidTargetsError):
        correctness(logits.softmax(-1), torch.tensor([2]))
    assert confidence(logits, check=False).item() == 3.0
    assert correctness(logits, targets, check=False).item() == 1.0
