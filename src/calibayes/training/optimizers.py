"""Optimisers and learning-rate schedulers: made by the caller's factories, and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from calibayes.errors import InvalidArgumentError, OptimizerError
from calibayes.objective import Objective
from calibayes.posterior.abstract_posterior import Posterior

if TYPE_CHECKING:
    from calibayes.training.stacked_members import StackedParameters

__all__ = [
    "OptimizerFactory",
    "SchedulerFactory",
    "check_interval",
    "check_optimizer",
    "handles_kl",
    "made_optimizer",
    "made_scheduler",
    "set_rho_rate",
]


class BindableOptimizer(Protocol):
    """Settings of an optimiser that needs to know more than parameters: `calibayes.NaturalGradient`."""

    def bind(self, posterior: Posterior, objective: Objective, dataset_size: int) -> torch.optim.Optimizer:
        """The optimiser of a posterior's parameters."""
        ...


OptimizerFactory = Callable[[Any], torch.optim.Optimizer] | BindableOptimizer
SchedulerFactory = Callable[[Any], LRScheduler]

_OPTIMIZER = "Expected `optimizer` to be a factory that returns a torch.optim.Optimizer"
_OPTIMIZER_EXAMPLE = "Example: `lambda parameters: torch.optim.RMSprop(parameters, lr=0.002)`."
_SCHEDULER = "Expected `scheduler` to be a factory that returns a torch.optim.lr_scheduler.LRScheduler"
_SCHEDULER_EXAMPLE = "Example: `lambda optimizer: CosineAnnealingLR(optimizer, 10)`."


def made_optimizer(
    factory: Any, posterior: Posterior | StackedParameters, objective: Objective, dataset_size: Callable[[], int]
) -> torch.optim.Optimizer:
    """Return the optimiser of the posterior's parameters, or raise `OptimizerError`.

    ``factory`` is called with the posterior's parameter groups, or bound to the posterior, the objective and $|D|$.
    """
    if hasattr(factory, "bind"):
        if isinstance(factory, type):
            raise OptimizerError(f"Expected settings, but got the class {factory.__name__}. Write `{factory.__name__}()`.")
        optimizer = factory.bind(posterior, objective, dataset_size())
    elif callable(factory):
        try:
            optimizer = factory(posterior.parameter_groups())
        except (TypeError, ValueError) as error:
            raise OptimizerError(f"The optimiser cannot be made for flat vectors in parameter groups: {error}") from error
    else:
        raise OptimizerError(f"{_OPTIMIZER}, but got {factory!r}. {_OPTIMIZER_EXAMPLE}")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise OptimizerError(f"{_OPTIMIZER}, but it returned {type(optimizer).__name__}. {_OPTIMIZER_EXAMPLE}")
    check_optimizer(optimizer, posterior)
    return optimizer


def check_optimizer(optimizer: torch.optim.Optimizer, posterior: Posterior | StackedParameters) -> None:
    """Raise `OptimizerError` unless an optimiser trains all the posterior's parameters, and none with what harms it."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise OptimizerError("LBFGS evaluates the loss several times a step, which a sampled loss does not allow. Use Adam.")
    untrained = {id(parameter): name for name, parameter in posterior.named_parameters()}
    known, widths = set(untrained), posterior.widths()
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if id(parameter) not in known:
                raise OptimizerError("The optimiser holds parameters that are not the posterior's. Use those it is given.")
            untrained.pop(id(parameter), None)
            if id(parameter) in widths and group.get("weight_decay", 0):
                raise OptimizerError(
                    f"Weight decay {group['weight_decay']} on rho pulls every standard deviation towards 1. "
                    "Keep the parameter groups as they are given, or set weight_decay=0 for those named '….rho'."
                )
    if untrained:
        name = next(iter(untrained.values()))
        raise OptimizerError(f"The optimiser leaves out {name!r}. Pass it all the parameters that it is given.")


def set_rho_rate(optimizer: torch.optim.Optimizer, posterior: Posterior, rate: float) -> None:
    r"""Set the learning rate of the parameter groups that hold $\rho$."""
    widths = posterior.widths()
    for group in optimizer.param_groups:
        if any(id(parameter) in widths for parameter in group["params"]):
            group["lr"] = rate


def handles_kl(optimizer: Any) -> bool:
    """Return True if an optimiser, or the one that accelerate or Lightning has wrapped, adds the KL's effect itself."""
    return any(getattr(each, "handles_kl", False) for each in (optimizer, getattr(optimizer, "optimizer", None)))


def check_interval(interval: object) -> None:
    """Raise `InvalidArgumentError` unless ``interval`` is ``"epoch"`` or ``"step"``."""
    if interval not in ("epoch", "step"):
        raise InvalidArgumentError(f"Expected `scheduler_interval` to be 'epoch' or 'step', but got {interval!r}.")


def made_scheduler(
    factory: SchedulerFactory, optimizer: torch.optim.Optimizer, interval: Literal["epoch", "step"]
) -> LRScheduler:
    """Return the scheduler that a factory makes for an optimiser, or raise `InvalidArgumentError`."""
    if not callable(factory):
        raise InvalidArgumentError(f"{_SCHEDULER}, but got {factory!r}. {_SCHEDULER_EXAMPLE}")
    try:
        scheduler = factory(optimizer)
    except TypeError as error:
        message = f"`scheduler={factory!r}` cannot be called with the optimiser: {error}. {_SCHEDULER_EXAMPLE}"
        raise InvalidArgumentError(message) from error
    if not isinstance(scheduler, LRScheduler):
        raise InvalidArgumentError(f"{_SCHEDULER}, but it returned {scheduler!r}. {_SCHEDULER_EXAMPLE}")
    if scheduler.optimizer is not optimizer:
        raise InvalidArgumentError(
            f"`scheduler` returned a {type(scheduler).__name__} of another optimiser than the one it was given. "
            f"{_SCHEDULER_EXAMPLE}"
        )
    if isinstance(scheduler, ReduceLROnPlateau) and interval == "step":
        raise InvalidArgumentError("ReduceLROnPlateau looks at a metric of the epoch. Use `scheduler_interval='epoch'`.")
    return scheduler
