"""The terms that a step logs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

from calibayes.errors import NonFiniteLossError
from calibayes.objective.terms import NamedValues
from calibayes.training.training_position import TrainingPosition

__all__ = ["StepTerms", "check_finite"]


@final
@dataclass(frozen=True)
class StepTerms(NamedValues[float]):
    """The terms of one step; each value is an attribute too. As a sequence: the total, the values, the number of examples.

    Attributes:
        total: the loss.
        values: the mean of the objective's loss, every term and ``"kl"`` by name, before their weights.
        examples: how many examples the batch had.

    Examples:
        >>> step = StepTerms(0.7, {"cross_entropy": 0.5, "calibration": 0.1, "kl": 12.0}, 32)
        >>> step.cross_entropy, list(step)
        (0.5, [0.7, 0.5, 0.1, 12.0, 32])
    """

    total: float
    values: dict[str, float]
    examples: int

    def __len__(self) -> int:
        return len(self.values) + 2

    def __getitem__(self, index: int) -> float:
        return (self.total, *self.values.values(), self.examples)[index]

    def __iter__(self) -> Iterator[float]:
        return iter((self.total, *self.values.values(), self.examples))


def check_finite(terms: Mapping[str, float], place: TrainingPosition, clipping: str) -> None:
    """Raise `NonFiniteLossError` for the first term that is infinite or NaN; ``clipping`` is how gradients are clipped here."""
    for name, value in terms.items():
        if not math.isfinite(value):
            raise NonFiniteLossError(
                f"The {name} term became {value} in epoch {place.epoch + 1}, step {place.step + 1}. This step was not "
                f"taken. Try a smaller learning rate, {clipping}, or look for NaN in the inputs.",
                term=name,
                epoch=place.epoch + 1,
                step=place.step + 1,
            )
