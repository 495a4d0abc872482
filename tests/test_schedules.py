"""Weights that change over training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from calibayes.errors import InvalidArgumentError
from calibayes.schedules import Linear, value_at


@pytest.mark.parametrize(("start", "end"), [(0.0, 10.0), (4.0, 1.0), (2.0, 2.0)])
@pytest.mark.parametrize("steps", [1, 7, 100])
def test_linear_is_a_line_and_then_constant(start: float, end: float, steps: int) -> None:
    schedule = Linear(end=end, steps=steps, start=start)
    expected = np.interp(np.arange(3 * steps), [0, steps], [start, end])
    assert [schedule(step) for step in range(3 * steps)] == pytest.approx(expected.tolist(), rel=1e-12)
    assert schedule(steps) == schedule(10**9) == end


@pytest.mark.parametrize("steps", [0, -3, 2.5, True, "10", None])
def test_bad_steps(steps: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"`steps` to be a positive integer, but got {steps!r}"):
        Linear(end=1.0, steps=steps)


@pytest.mark.parametrize("name", ["start", "end"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, "1", None])
def test_bad_ends_are_named_before_training(name: str, value: Any) -> None:
    settings: dict[str, Any] = {"start": 0.0, "end": 1.0, "steps": 10, name: value}
    with pytest.raises(InvalidArgumentError, match=f"`{name}` to be a non-negative finite number, but got {value!r}"):
        Linear(**settings)


def test_value_at() -> None:
    assert value_at(3, 5, "lam") == 3.0
    assert value_at(0.0, 5, "lam") == 0.0
    assert value_at(lambda step: 0.5 * step, 5, "lam") == 2.5
    assert value_at(Linear(end=10.0, steps=10), 5, "lam") == 5.0


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, True, "1", None])
def test_bad_values_are_named_with_their_step(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"`beta` to be a non-negative finite number, but got {value!r} at step 4"):
        value_at(value, 4, "beta")
    with pytest.raises(InvalidArgumentError, match=f"`beta` .* but got {value!r} at step 4"):
        value_at(lambda _: value, 4, "beta")
