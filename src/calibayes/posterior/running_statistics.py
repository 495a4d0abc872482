"""Running statistics (batch norm and the like) over a step that runs the network several times."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from calibayes.distributed import ALONE, Processes
from calibayes.posterior.network_posterior import NetworkPosterior

__all__ = ["StepStatistics"]


class StepStatistics:
    """The buffers of one optimiser step: every run starts from the same values, and their average is kept at the end.

    So the statistics advance once a step whatever the number of samples or micro-batches is, and they are those of the
    average over the drawn networks rather than of the one drawn last.
    """

    def __init__(self, posterior: NetworkPosterior) -> None:
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

    def keep(self, processes: Processes = ALONE, share: float = 1.0, alike: Collection[str] = ()) -> None:
        """Write the averages to the posterior's buffers.

        They are taken over ``processes`` too, by each one's ``share`` of the examples, except for buffers that are ``alike``.
        """
        with torch.no_grad():
            if processes.size > 1:
                means = self._means.items()
                self._average(processes, share, [n for n, mean in means if n not in alike and mean.is_floating_point()])
            for name, mean in self._means.items():
                self._held[name].copy_(mean)

    def _average(self, processes: Processes, share: float, names: Sequence[str]) -> None:
        if not names:
            return
        moved = torch.tensor([float(not torch.equal(self._means[name], self._held[name])) for name in names])
        processes.sum_([moved])
        moving = [name for name, processes_that in zip(names, moved.tolist(), strict=True) if processes_that]
        steps = [(self._means[name] - self._held[name]) * share for name in moving]
        processes.sum_(steps)
        self._means |= {name: self._held[name] + step for name, step in zip(moving, steps, strict=True)}
