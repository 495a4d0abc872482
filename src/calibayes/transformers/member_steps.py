"""The gradients of a step on the members of a posterior; the ``Trainer`` then steps their optimiser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

from calibayes.distributed import Processes
from calibayes.objective import Objective
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.ensemble import member_seed
from calibayes.training.micro_batches import MicroBatch, TrainingPosition
from calibayes.training.step import Stepper, StepSettings

__all__ = ["MemberSteps"]


@final
class MemberSteps:
    """One `Stepper` for each member, with a seed derived from that of ``settings``; none of them steps the shared optimiser."""

    def __init__(
        self,
        posterior: Posterior,
        objective: Objective,
        optimizer: Any,
        dataset_size: int,
        settings: StepSettings,
        processes: Processes,
    ) -> None:
        self.processes = processes
        self._steppers = []
        for index, member in enumerate(posterior.members):
            own = replace(settings, seed=member_seed(settings.seed, index))
            stepper = Stepper(member, objective, optimizer, dataset_size, own, processes, "a smaller `max_grad_norm`")
            self._steppers.append(stepper)
        self._steps, self._sums = 0, dict[str, float]()

    def gradients(self, parts: list[MicroBatch], place: TrainingPosition) -> float:
        """Add every member's gradient to those of its parameters, and keep its running statistics; returns the mean loss."""
        members = []
        for stepper in self._steppers:
            terms, statistics = stepper.gradients({"batch": parts}, place)
            stepper.keep(statistics, parts[0].total)
            members.append(terms)
        self._steps += 1
        for name in members[0].values:
            mean = sum(terms.values[name] for terms in members) / len(members)
            self._sums[name] = self._sums.get(name, 0.0) + mean
        return sum(terms.total for terms in members) / len(members)

    def take_means(self) -> dict[str, float]:
        """The mean terms of the loss, before their weights, over the steps since the last call."""
        means = {name: value / self._steps for name, value in self._sums.items()}
        self._steps, self._sums = 0, {}
        return means
