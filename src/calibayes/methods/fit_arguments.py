"""The networks and `fit` arguments of a method, combined with those of the caller."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Any

from torch import nn

from calibayes.errors import InvalidArgumentError
from calibayes.methods.method_settings import UsualOptimizer
from calibayes.methods.registry import Plan, method_named
from calibayes.networks.head_dropout import with_dropout
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.ensemble import member_seed

__all__ = ["fit_arguments", "fit_settings", "member_networks", "plain_values", "prediction_passes", "prepared_network"]


def fit_arguments(plan: Plan, **own: Any) -> dict[str, Any]:
    """The arguments of `calibayes.fit`: the caller's own, overridden by those that the method's plan needs.

    The caller's optimiser replaces the usual one, but not one that the method needs, such as natural gradients or weight decay.
    """
    needed = dict(plan.fit)
    optimizer = needed.get("optimizer")
    if "optimizer" in own and isinstance(optimizer, UsualOptimizer) and optimizer.weight_decay == 0:
        del needed["optimizer"]
    return {**own, **needed}


def fit_settings(plan: Plan, known: Collection[str], method: str, door: str) -> dict[str, Any]:
    """The plan's arguments of `calibayes.fit`, or an error if ``door``, which the user has called, does not know them."""
    for name, value in plan.fit.items():
        if name not in known:
            raise InvalidArgumentError(
                f"The method {method!r} trains with {name}={value!r}, which {door} has not. Train with `calibayes.fit`."
            )
    return plan.fit


def member_networks(make: Callable[[int], nn.Module], seed: int) -> Callable[[], nn.Module]:
    """A function that makes every member's network in turn: the first from ``seed``, the others from seeds derived from it.

    Examples:
        >>> make = member_networks(lambda seed: torch.nn.Linear(4, 3), seed=0)
        >>> posterior = calibayes.build("ensemble", make, members=3).posterior
        >>> len(posterior.members)
        3
    """
    members = count()
    return lambda: make(member_seed(seed, next(members)))


def prepared_network(method: str, net: nn.Module) -> nn.Module:
    """The network, with dropout added if the method needs it and the network has none: for networks not chosen by the user."""
    return with_dropout(net) if method_named(method).needs_dropout else net


def prediction_passes(posterior: Posterior, samples: int) -> int:
    """Return how many networks a prediction with this many samples runs, over all members.

    Examples:
        >>> point = calibayes.Point(torch.nn.Linear(4, 3))
        >>> prediction_passes(point, 20), prediction_passes(calibayes.Ensemble([point]), 20)
        (1, 1)
    """
    members = posterior.members
    return sum(-(-samples // len(members)) if member.random else 1 for member in members)


def plain_values(value: Any) -> Any:
    """Settings as JSON can hold them; anything but numbers, texts and collections of them is replaced by its `repr`.

    Examples:
        >>> plain_values({"members": 3, "loss": calibayes.CrossEntropy(label_smoothing=0.1)})
        {'members': 3, 'loss': 'CrossEntropy(label_smoothing=0.1)'}
    """
    if isinstance(value, Mapping):
        return {str(name): plain_values(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
