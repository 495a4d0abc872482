"""Running statistics (batch norm and the like) over a step that runs the network several times."""

from __future__ import annotations

import torch
from torch import Tensor

from calibayes.posterior.base import Posterior

__all__ = ["StepStatistics"]


class StepStatistics:
    """The buffers of one optimiser step: every run starts from the same values, and their average is kept at the end.

    So the statistics advance once a step whatever the number of samples or micro-batches is, and they are those of the
    average over the drawn networks rather than of the one drawn last.
    """

    def __init__(self, posterior: Posterior) -> None:
        self._held = posterior.buffer_values()
        self._examples = 0
        self._means: dict[str, Tensor] = {}

    def fresh(self) -> dict[str, Tensor]:
        """Copies for one run of the network to update."""
        return {name: value.clone() for name, value in self._held.items()}

    def add(self, updated: dict[str, Tensor], examples: int) -> None:
        """Count one run's updated buffers by its number of examples; integers (step counters) are taken as they are.

        What all runs agree on is kept to the bit: constants, and masks with infinite or very large entries.
        """
        self._examples += examples
        for name, value in updated.items():
            value = value.detach()
            mean = self._means.get(name)
            if mean is not None and value.is_floating_point():
                value = torch.where(value == mean, mean, mean + (value - mean) * (examples / self._examples))
            self._means[name] = value

    def keep(self) -> None:
        """Write the averages to the posterior's buffers."""
        with torch.no_grad():
            for name, mean in self._means.items():
                self._held[name].copy_(mean)
