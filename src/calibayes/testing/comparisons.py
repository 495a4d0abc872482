"""Compare results; an error says what differs and by how much."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import torch
from torch import Tensor

__all__ = ["close", "different", "expect", "finite", "gradient_by_differences", "same_bits"]

Tensors = Tensor | Mapping[str, Tensor]


def expect(condition: bool, problem: str) -> None:
    """Raise an AssertionError that says what the problem is, unless the condition holds."""
    if not condition:
        raise AssertionError(problem)


def same_bits(actual: Tensors, expected: Tensors, what: str) -> None:
    """Expect equal tensors, bit by bit."""
    _compare(actual, expected, what, lambda a, b: bool(torch.equal(a, b) or _equal_with_nan(a, b)))


def close(actual: Tensors, expected: Tensors, what: str, tolerance: float | None = None) -> None:
    """Expect tensors that are equal but for rounding."""

    def near(a: Tensor, b: Tensor) -> bool:
        allowed = (1e-9 if a.dtype == torch.float64 else 1e-4) if tolerance is None else tolerance
        return bool(torch.allclose(a.double(), b.double(), rtol=allowed, atol=allowed))

    _compare(actual, expected, what, near)


def different(first: Tensors, second: Tensors, what: str) -> None:
    """Expect that at least one tensor differs."""
    pairs = [(a, _named(second)[name]) for name, a in _named(first).items()]
    expect(any(not torch.equal(a, b) for a, b in pairs), what)


def finite(actual: Tensor, what: str) -> None:
    """Expect finite numbers."""
    expect(bool(actual.isfinite().all()), f"{what} is not finite: {actual.detach().flatten()[:8].tolist()}")


def gradient_by_differences(function: Callable[..., Tensor], inputs: Mapping[str, Tensor]) -> None:
    """Expect a gradient with respect to inputs, by name, that finite differences confirm."""
    step = 1e-6
    leaves = [value.detach().clone().requires_grad_() for value in inputs.values()]
    with torch.enable_grad():
        value = function(*leaves)
    expect(value.requires_grad, "its value has no gradient: use PyTorch's operations, without `detach` or `item`")
    gradients = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    for index, (name, gradient) in enumerate(zip(inputs, gradients, strict=True)):
        for place in product(*map(range, gradient.shape)):
            ends = []
            for sign in (1, -1):
                moved = [leaf.detach().clone() for leaf in leaves]
                moved[index][place] += sign * step
                ends.append(function(*moved))
            where = place[0] if len(place) == 1 else place
            close(gradient[place], (ends[0] - ends[1]) / (2 * step), f"the gradient in {name} {where}, by differences,", 1e-4)


def _named(tensors: Tensors) -> Mapping[str, Tensor]:
    return {"": tensors} if isinstance(tensors, Tensor) else tensors


def _compare(actual: Tensors, expected: Tensors, what: str, alike: Callable[[Tensor, Tensor], bool]) -> None:
    one, other = _named(actual), _named(expected)
    expect(one.keys() == other.keys(), f"{what}: names differ: {sorted(set(one) ^ set(other))[:8]}")
    for name, value in one.items():
        place = f"{what}, {name!r}," if name else what
        expect(value.shape == other[name].shape, f"{place} has shape {list(value.shape)}, not {list(other[name].shape)}")
        expect(value.dtype == other[name].dtype, f"{place} has type {value.dtype}, not {other[name].dtype}")
        expect(alike(value, other[name]), f"{place} differs{_by_how_much(value, other[name])}")


def _by_how_much(actual: Tensor, expected: Tensor) -> str:
    if not actual.numel():
        return ""
    gap = (actual.detach().double() - expected.detach().double()).abs()
    worst = int(gap.flatten().argmax())
    return f" by up to {float(gap.max()):.3g}: {actual.flatten()[worst].item():.9g}, not {expected.flatten()[worst].item():.9g}"


def _equal_with_nan(a: Any, b: Any) -> bool:
    return bool(a.is_floating_point() and torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num()))
