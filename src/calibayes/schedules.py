r"""Weights that change over training: KL annealing, warm-up of $\lambda$."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from calibayes.checks import positive_integer
from calibayes.errors import InvalidArgumentError

__all__ = ["Linear", "Schedule", "value_at"]

Schedule = float | Callable[[int], float]


@dataclass(frozen=True)
class Linear:
    """A straight line from ``start`` to ``end`` over ``steps`` optimiser steps, constant after.

    Examples:
        >>> warm_up = Linear(end=10.0, steps=100)
        >>> warm_up(0), warm_up(50), warm_up(1000)
        (0.0, 5.0, 10.0)
    """

    end: float
    steps: int
    start: float = 0.0

    def __post_init__(self) -> None:
        value_at(self.start, 0, "start")
        value_at(self.end, self.steps, "end")
        positive_integer("steps", self.steps)

    def __call__(self, step: int) -> float:
        """The value at an optimiser step, counted from 0."""
        return self.start + (self.end - self.start) * min(step / self.steps, 1.0)


def value_at(schedule: Schedule, step: int, name: str) -> float:
    """The schedule's value at an optimiser step (from 0), checked to be a non-negative finite number."""
    value = schedule(step) if callable(schedule) else schedule
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value < float("inf"):
        raise InvalidArgumentError(f"Expected `{name}` to be a non-negative finite number, but got {value!r} at step {step}.")
    return float(value)
