"""What is logged of the steps of a training."""

from __future__ import annotations

from calibayes.training.step_terms import StepTerms

__all__ = ["TermMeans"]


class TermMeans:
    """The means of the terms of the loss, before their weights, over the steps since they were last taken."""

    def __init__(self) -> None:
        self._steps: list[StepTerms] = []

    def add(self, terms: StepTerms) -> None:
        """Count a step."""
        self._steps.append(terms)

    def take(self) -> dict[str, float]:
        """The means by name, none without a step; from here on only later steps count."""
        steps, self._steps = self._steps, []
        names = steps[0].values if steps else ()
        return {name: sum(step.values[name] for step in steps) / len(steps) for name in names}
