"""Steps on the members of a posterior, of which the ``Trainer`` takes the optimiser's part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

from calibayes.distributed import Processes
from calibayes.objective import Objective
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.ensemble import member_seed
from calibayes.training.step import Stepper, StepSettings, StepTerms
from calibayes.training.training_position import MicroBatch, TrainingPosition

__all__ = ["MemberSteps"]


@final
class MemberSteps:
    """One `Stepper` for each member, each with a seed of its own; they share an optimiser, and none of them steps it.

    Args:
        posterior: what is trained.
        objective: of every member.
        optimizer: of all their parameters.
        dataset_size: $|D|$.
        settings: with the seed of the ensemble.
        processes: that train together.
    """

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
        clipping = "a smaller `max_grad_norm`"
        self._steppers = [
            Stepper(
                member,
                objective,
                optimizer,
                dataset_size,
                replace(settings, seed=member_seed(settings.seed, index)),
                processes,
                clipping,
            )
            for index, member in enumerate(posterior.members)
        ]

    def gradients(self, parts: list[MicroBatch], place: TrainingPosition) -> StepTerms:
        """Add every member's own gradient to those of its parameters, and keep its running statistics.

        Returns:
            The means of the terms over the members.
        """
        found = []
        for stepper in self._steppers:
            terms, statistics = stepper.gradients(parts, None, place)
            stepper.keep(statistics, parts[0].total)
            found.append(terms)
        if len(found) == 1:
            return found[0]
        values = {name: sum(terms.values[name] for terms in found) / len(found) for name in found[0].values}
        return StepTerms(sum(terms.total for terms in found) / len(found), values, found[0].examples)
