"""Apply a method to new networks and train it, in the same way in every experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

from calibayes.data.augment import Augmented
from calibayes.methods import Plan, build
from calibayes.methods.fit_arguments import fit_arguments, member_networks, prepared_network
from calibayes.randomness import seeded
from calibayes.training import History, fit

__all__ = ["fit_plan", "plan_from_seed", "seeded_network"]


def seeded_network(method: str, network: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A new network for a method, its initial weights drawn from the seed."""
    with seeded(seed):
        return prepared_network(method, network())


def plan_from_seed(method: str, network: Callable[[], nn.Module], seed: int, **settings: Any) -> Plan:
    """The method, applied to new networks; with the same seed all methods start from the same weights."""
    return build(method, member_networks(lambda each: seeded_network(method, network, each), seed), **settings)


def fit_plan(
    plan: Plan,
    data: Any,
    *,
    learning_rate: float,
    epochs: int,
    batch_size: int,
    samples: int,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam,
    cosine: bool = True,
    **others: Any,
) -> History:
    """Train a plan in this process; Ctrl-C raises `KeyboardInterrupt`.

    The optimiser is used unless the method needs another one; with ``cosine`` its learning rate falls to zero. ``others`` are
    passed on to `calibayes.fit`.
    """
    examples = len((data.data if isinstance(data, Augmented) else data)[1])
    steps = epochs * -(-examples // batch_size)
    own = fit_arguments(
        plan,
        optimizer=lambda parameters: optimizer(parameters, lr=learning_rate),
        scheduler=(lambda each: CosineAnnealingLR(each, steps)) if cosine else None,
        scheduler_interval="step",
        samples=samples,
    )
    fixed: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "group": None, "progress": False}
    history = fit(plan.posterior, data, plan.objective, **fixed, **own, **others)
    if history.stopped == "interrupted":
        raise KeyboardInterrupt
    return history
