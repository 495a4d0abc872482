"""Optimisers of a posterior's parameters: made by a factory, and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch

from calibayes.errors import OptimizerError
from calibayes.objective import Objective
from calibayes.posterior.abstract_posterior import Posterior

__all__ = ["BindableOptimizer", "OptimizerFactory", "check_optimizer", "made_optimizer", "set_rho_rate"]


class OptimizedParameters(Protocol):
    """The parameters that an optimiser is made for: those of a posterior, or of several."""

    def widths(self) -> set[int]:
        """The identities of logarithms of standard deviations."""
        ...

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Named parameter groups."""
        ...

    def named_parameters(self) -> Any:
        """All parameters with their names."""
        ...


class BindableOptimizer(Protocol):
    """An optimiser's settings, for one that needs to know more than parameters: `calibayes.NaturalGradient`."""

    def bind(self, posterior: Posterior, objective: Objective, dataset_size: int) -> torch.optim.Optimizer:
        """The optimiser of a posterior's parameters."""
        ...


OptimizerFactory = Callable[[Any], torch.optim.Optimizer] | BindableOptimizer

_FACTORY = "a factory that returns a torch.optim.Optimizer"
_EXAMPLE = "Example: `lambda parameters: torch.optim.RMSprop(parameters, lr=0.002)`."


def made_optimizer(
    factory: OptimizerFactory, posterior: OptimizedParameters, objective: Objective, dataset_size: int | Callable[[], int]
) -> torch.optim.Optimizer:
    """The optimiser of the posterior's parameters, or an error that says what is wrong with it.

    Args:
        factory: is called with the posterior's parameter groups; or settings that are bound to the posterior.
        posterior: what is trained.
        objective: what is minimised.
        dataset_size: $|D|$, or a function that returns it, which is called only where it is needed.
    """
    made = _made(factory, posterior, objective, dataset_size)
    if not isinstance(made, torch.optim.Optimizer):
        raise OptimizerError(f"Expected `optimizer` to be {_FACTORY}, but it returned {type(made).__name__}. {_EXAMPLE}")
    check_optimizer(made, posterior)
    return made


def _made(factory: Any, posterior: Any, objective: Objective, dataset_size: int | Callable[[], int]) -> Any:
    if hasattr(factory, "bind"):
        if isinstance(factory, type):
            raise OptimizerError(f"Expected settings, but got the class {factory.__name__}. Write `{factory.__name__}()`.")
        return factory.bind(posterior, objective, dataset_size() if callable(dataset_size) else dataset_size)
    if not callable(factory):
        raise OptimizerError(f"Expected `optimizer` to be {_FACTORY}, but got {factory!r}. {_EXAMPLE}")
    try:
        return factory(posterior.parameter_groups())
    except (TypeError, ValueError) as error:
        raise OptimizerError(f"The optimiser cannot be made for flat vectors in parameter groups: {error}") from error


def set_rho_rate(made: torch.optim.Optimizer, posterior: Posterior, rate: float) -> None:
    r"""Give the groups of an optimiser that hold $\rho$ a learning rate of their own."""
    widths = posterior.widths()
    for group in made.param_groups:
        if any(id(parameter) in widths for parameter in group["params"]):
            group["lr"] = rate


def check_optimizer(made: torch.optim.Optimizer, posterior: OptimizedParameters) -> None:
    """Raise `OptimizerError` unless an optimiser trains all the posterior's parameters, and none with what harms it."""
    if isinstance(made, torch.optim.LBFGS):
        raise OptimizerError("LBFGS evaluates the loss several times a step, which a sampled loss does not allow. Use Adam.")
    trained = {id(p): name for name, p in posterior.named_parameters()}
    widths = posterior.widths()
    for group in made.param_groups:
        for parameter in group["params"]:
            if id(parameter) not in trained:
                raise OptimizerError("The optimiser holds parameters that are not the posterior's. Use those it is given.")
            trained[id(parameter)] = ""
            if id(parameter) in widths and group.get("weight_decay", 0):
                raise OptimizerError(
                    f"Weight decay {group['weight_decay']} on rho pulls every standard deviation towards 1. "
                    "Keep the parameter groups as they are given, or set weight_decay=0 for those named '….rho'."
                )
    left = [name for name in trained.values() if name]
    if left:
        raise OptimizerError(f"The optimiser leaves out {left[0]!r}. Pass it all the parameters that it is given.")
