"""The contract of a method that trains its members by itself, without `calibayes.fit`."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from torch import Tensor

from calibayes.posterior.abstract_posterior import Posterior

__all__ = ["Examples", "Learner"]


class Examples(NamedTuple):
    """Inputs with their classes, and how much each counts; equally by default."""

    inputs: Tensor
    targets: Tensor
    weights: Tensor | None = None

    def rows(self, places: Any) -> Examples:
        """The examples at some places."""
        return Examples(self.inputs[places], self.targets[places], None if self.weights is None else self.weights[places])

    @property
    def data(self) -> tuple[Tensor, ...]:
        """The arguments of `calibayes.fit`: inputs, classes, and weights where there are any."""
        return (self.inputs, self.targets) if self.weights is None else (self.inputs, self.targets, self.weights)


class Learner(Protocol):
    """Trains a member on some rows, and stops when it gets no better on others."""

    @property
    def method(self) -> str:
        """The name of the method, as registered."""

    @property
    def title(self) -> str:
        """The name that users see."""

    def __call__(self, train: Examples, held_out: Examples, classes: int, seed: int) -> Posterior:
        """Return the trained member."""
