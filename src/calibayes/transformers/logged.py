"""What is logged of the steps of a training."""

from __future__ import annotations

from calibayes.training.step import StepTerms

__all__ = ["TermMeans"]

_NAMES = ("cross_entropy", "calibration", "kl")


class TermMeans:
    """The means of the terms of the loss, before their weights, over the steps since they were last taken."""

    def __init__(self) -> None:
        self._start()

    def add(self, terms: StepTerms) -> None:
        """Count a step."""
        self._steps += 1
        for name in _NAMES:
            self._sums[name] += getattr(terms, name)

    def take(self) -> dict[str, float]:
        """The means by name, none without a step; from here on only later steps count."""
        found = {name: value / self._steps for name, value in self._sums.items()} if self._steps else {}
        self._start()
        return found

    def _start(self) -> None:
        self._steps, self._sums = 0, dict.fromkeys(_NAMES, 0.0)
