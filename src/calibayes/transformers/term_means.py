"""The means of a step's terms that the ``Trainer`` logs."""

from __future__ import annotations

from calibayes.training.step_terms import StepTerms

__all__ = ["TermMeans"]


class TermMeans:
    """The means of the terms of the loss, before their weights, over the steps since they were last taken."""

    def __init__(self) -> None:
        self._steps, self._sums = 0, dict[str, float]()

    def add(self, terms: StepTerms) -> None:
        """Count a step."""
        self._steps += 1
        for name, value in terms.values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value

    def take(self) -> dict[str, float]:
        """The means by name, none without a step; from here on only later steps count."""
        found = {name: value / self._steps for name, value in self._sums.items()}
        self._steps, self._sums = 0, {}
        return found
