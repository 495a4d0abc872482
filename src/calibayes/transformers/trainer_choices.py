"""The choices of the caller of a `CalibayesTrainer`, completed by the plan of a method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from calibayes.checks import positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.methods import Plan
from calibayes.objective import Objective, check_batch_terms, checked_objective
from calibayes.training.framework_run import checked_averaging
from calibayes.training.optimizers import OptimizerFactory
from calibayes.training.weight_averaging import Averaging

__all__ = ["CallerChoices", "CompletedChoices"]

_LOGGED = ("loss", "learning_rate", "grad_norm")


class CompletedChoices(NamedTuple):
    """Everything that a training needs besides the posterior and the data; no ``optimizer`` is that of ``args``."""

    objective: Objective
    samples: int
    averaging: Averaging | None
    optimizer: OptimizerFactory | None


@dataclass(frozen=True)
class CallerChoices:
    """The caller's choices, each ``None`` where it is left to the method.

    Attributes:
        objective: what is minimised.
        samples: $R$.
        averaging: the rule by which weights are averaged.
        optimizer: a factory, or settings such as `NaturalGradient`.
        optimizer_made: whether there is an optimiser already.
        rho_rate: whether $\\rho$ is to have a learning rate of its own.
    """

    objective: Objective | None
    samples: int | None
    averaging: Averaging | None
    optimizer: OptimizerFactory | None
    optimizer_made: bool
    rho_rate: bool

    def __post_init__(self) -> None:
        if self.objective is not None:
            check_batch_terms(checked_objective(self.objective), "CalibayesTrainer", logged=_LOGGED)
        if self.samples is not None:
            positive_integer("samples", self.samples)
        checked_averaging(self.averaging)

    def own_objective(self) -> Objective:
        """The caller's objective, which a posterior that is there already cannot go without."""
        if self.objective is None:
            raise InvalidArgumentError("A posterior that is given comes without an objective. Pass `objective`.")
        return self.objective

    def completed(self, plan: Plan) -> CompletedChoices:
        """The caller's choices, and the plan's where there are none."""
        objective = plan.objective if self.objective is None else self.objective
        check_batch_terms(objective, "CalibayesTrainer", logged=_LOGGED)
        own = plan.fit.get("optimizer")
        if own is not None and (self.optimizer is not None or self.optimizer_made):
            raise InvalidArgumentError(
                f"The method trains with its own optimiser, {own!r}. Leave `optimizer` and `optimizers` out."
            )
        if own is not None and self.rho_rate:
            raise InvalidArgumentError(
                f"The method's optimiser, {own!r}, has its learning rates. Leave `rho_learning_rate` out."
            )
        return CompletedChoices(
            objective,
            plan.fit.get("samples", 1) if self.samples is None else self.samples,
            plan.fit.get("averaging") if self.averaging is None else self.averaging,
            own if self.optimizer is None else self.optimizer,
        )
