"""Every batch has a finite value and a finite gradient: measures × scores × awkward batches × types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from calibayes.calibration import DECE, MMCE, SBECE, WMMCE

Batch = tuple[Tensor, Tensor]
Make = Callable[..., Callable[[Tensor, Tensor], Tensor]]


def ordinary(n: int, classes: int, scale: float = 2.0) -> Batch:
    return torch.randn(n, classes) * scale, torch.randint(classes, (n,))


def all_right() -> Batch:
    logits, _ = ordinary(20, 5)
    return logits, logits.argmax(-1)


def all_wrong() -> Batch:
    logits, _ = ordinary(20, 5)
    return logits, logits.argmin(-1)


def exact_ties() -> Batch:
    return torch.zeros(12, 4), torch.arange(12) % 4


def tied_examples() -> Batch:
    logits, targets = ordinary(3, 4)
    return logits.repeat(5, 1), targets.repeat(5)


def one_hot() -> Batch:
    # e^{-1e4} is zero in every type.
    return torch.eye(5).repeat(3, 1) * 1e4, torch.arange(15) % 4


def one_hot_all_right() -> Batch:
    return torch.eye(5).repeat(3, 1) * 1e4, torch.arange(15) % 5


def saturated() -> Batch:
    return ordinary(20, 5, 3e4)[0].clamp(-6e4, 6e4), torch.randint(5, (20,))


BATCHES: dict[str, Callable[[], Batch]] = {
    "ordinary": lambda: ordinary(20, 5),
    "all right": all_right,
    "all wrong": all_wrong,
    "one right": lambda: (torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0])),
    "one wrong": lambda: (torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([1])),
    "one undecided": lambda: (torch.zeros(1, 2), torch.tensor([1])),
    "exact ties": exact_ties,
    "tied examples": tied_examples,
    "one-hot": one_hot,
    "one-hot, all right": one_hot_all_right,
    "saturated": saturated,
    "two classes": lambda: ordinary(20, 2),
    "a thousand classes": lambda: ordinary(20, 1000),
    "samples": lambda: (torch.randn(3, 10, 4), torch.randint(4, (10,))),
}
MEASURES: dict[str, Make] = {
    "wmmce": WMMCE,
    "wmmce, reference": lambda **options: WMMCE(normalization="reference", **options),
    "mmce": MMCE,
    "mmce, reference": lambda **options: MMCE(normalization="reference", **options),
    "dece": DECE,
    "sbece": SBECE,
    "sbece, norm 1": lambda **options: SBECE(norm=1.0, **options),
    "sbece, sharp": lambda **options: SBECE(temperature=1e-5, norm=1.5, **options),
}
BINNED = {name for name in MEASURES if "mmce" not in name}
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def assert_finite(measure: Callable[[Tensor, Tensor], Tensor], logits: Tensor, targets: Tensor) -> None:
    logits = logits.clone().requires_grad_()
    value = measure(logits.softmax(-1), targets)
    value.sum().backward()
    assert bool(value.isfinite().all())
    assert bool((value >= 0).all())
    assert bool((value <= 2).all())
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())
    if not value.any():
        assert not logits.grad.any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("batch", BATCHES)
def test_value_and_gradient(batch: str, dtype: torch.dtype) -> None:
    logits, targets = BATCHES[batch]()
    for mode in ("soft", "hard"):
        for name in MEASURES:
            options: list[dict[str, Any]] = (
                [{}] if name in BINNED else [{"kernel_width": width} for width in (0.001, 0.4, 10.0)]
            )
            for option in options:
                assert_finite(MEASURES[name](mode=mode, **option), logits.to(dtype), targets)


@given(data=st.data())
@settings(max_examples=60)
def test_any_batch(data: st.DataObject) -> None:
    n, classes = data.draw(st.integers(1, 6)), data.draw(st.integers(2, 5))
    value = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 500.0, -500.0]), st.floats(-100, 100, width=32))
    logits = torch.tensor(data.draw(st.lists(value, min_size=n * classes, max_size=n * classes))).reshape(n, classes)
    targets = torch.tensor(data.draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)))
    width = data.draw(st.sampled_from([0.001, 0.01, 0.4, 10.0]))
    for name, make in MEASURES.items():
        for mode in ("soft", "hard"):
            assert_finite(make(mode=mode, **({} if name in BINNED else {"kernel_width": width})), logits, targets)


def gradients(measure: WMMCE | MMCE | DECE | SBECE, r: Tensor, c: Tensor) -> tuple[float, Tensor, Tensor]:
    r, c = r.clone().requires_grad_(), c.clone().requires_grad_()
    value = measure.value(r, c)
    value.backward()
    assert r.grad is not None
    assert c.grad is not None
    return value.item(), r.grad, c.grad


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("normalization", ["paper", "reference"])
def test_gradient_is_zero_where_all_are_certain_and_right(normalization: Any, dtype: torch.dtype) -> None:
    ones = torch.ones(7, dtype=dtype)
    for measure in (WMMCE(normalization=normalization), MMCE(normalization=normalization), DECE(), SBECE()):
        value, grad_r, grad_c = gradients(measure, ones, ones)
        assert value == 0
        assert not grad_r.any()
        assert not grad_c.any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("right", "wrong"), [(1, 1), (1, 3), (3, 5), (49, 15), (1000, 24)])
def test_gradient_is_zero_where_the_value_is_but_for_rounding(right: int, wrong: int, dtype: torch.dtype) -> None:
    c = torch.cat([torch.ones(right), torch.zeros(wrong)]).to(dtype)
    n = right + wrong
    # WMMCE is zero at confidence one half (its 1/3 and 1/49 are rounded), MMCE where confidence is the accuracy.
    for measure, r in ((WMMCE(), 0.5), (MMCE(), right / n)):
        value, grad_r, grad_c = gradients(measure, torch.full((n,), r, dtype=dtype), c)
        assert value == 0
        assert not grad_r.any()
        assert not grad_c.any()


def test_gradient_next_to_zero_is_not_zero() -> None:
    # The threshold is at rounding and no higher: 1e-5 away in float32, |1 − 2r| has its slope.
    r = torch.full((10,), 0.50001)
    value, grad_r, _ = gradients(WMMCE(), r, torch.tensor([1.0] * 3 + [0.0] * 7))
    assert value == pytest.approx(2e-5, rel=1e-2)
    assert float(grad_r.sum()) == pytest.approx(2.0, rel=1e-2)


def test_autocast_does_not_touch_the_sums() -> None:
    logits, targets = ordinary(64, 5)
    probs = logits.softmax(-1)
    for measure in (WMMCE(), MMCE(), DECE(), SBECE()):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = measure(probs, targets)
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, measure(probs, targets), rtol=1e-5, atol=0)
