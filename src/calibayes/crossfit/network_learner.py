"""A registered method on a network as the way to train one member of a cross-fitted ensemble."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from calibayes.data.augment import Augmented
from calibayes.methods import Plan, build, method_named
from calibayes.methods.fit_arguments import fit_arguments, member_networks, prepared_network
from calibayes.methods.learner import Examples
from calibayes.networks.table_inputs import TableInputs
from calibayes.posterior import Point
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.randomness import seeded
from calibayes.training import EarlyStopping, fit
from calibayes.training.optimizers import OptimizerFactory

__all__ = ["NetworkLearner", "batch_size_for"]

_MOST_ENCODED = 2**27  # numbers of encoded rows that are kept: half a gigabyte; beyond, batches are encoded one by one
_BLOCK = 4096  # rows that are encoded at once
_WARM_UP = 0.05  # the share of the steps in which the learning rate rises


@dataclass(frozen=True)
class NetworkLearner:
    """Trains a registered method on a new network, with early stopping on the held-out rows.

    Attributes:
        method: one of `calibayes.NETWORK_METHODS`.
        network: makes a network; its initial weights come from PyTorch's global generator.
        settings: those of the method, by name.
        epochs: passes over the training rows, at most.
        steps: after which the learning rate has fallen to zero along a cosine, for 6 to ``epochs`` passes over the rows;
            ``None`` to leave the learning rate as it is.
        patience: epochs without a lower held-out NLL before training stops, or another rule; ``None`` to train to the end.
        batch_size: rows a step; by default by their number.
        samples: of the weights a step, where they are random.
        augment: shift and mirror images.
        optimizer: in place of the method's usual one: parameters → optimiser.
        own_network: the network is the user's, and nothing is added to it.
        device: where to train; by default a GPU if there is one.
        name: of the network, for users.
    """

    method: str
    network: Callable[[], nn.Module]
    settings: Mapping[str, Any] = field(default_factory=dict)
    epochs: int = 200
    steps: int | None = None
    patience: int | EarlyStopping | None = 8
    batch_size: int | None = None
    samples: int = 1
    augment: bool = False
    optimizer: OptimizerFactory | None = None
    own_network: bool = False
    device: str | torch.device | None = None
    name: str = "network"

    @property
    def title(self) -> str:
        """The name that users see."""
        return f"{self.name} ({method_named(self.method).title})"

    def __call__(self, train: Examples, held_out: Examples, classes: int, seed: int) -> Posterior:
        """Train a member; Ctrl-C raises `KeyboardInterrupt`."""
        plan = build(self.method, member_networks(self._network, seed), **self.settings)
        parts = _table_parts(plan.posterior)
        if parts is None or len(train.targets) * parts[0].width > _MOST_ENCODED:
            self._fit(plan, train, held_out, seed)
            return plan.posterior
        # The first layer is fixed, so rows go through it once rather than in every epoch.
        layer, body = parts[0], Point(parts[1])
        rows, other = (each._replace(inputs=_outputs(layer, each.inputs)) for each in (train, held_out))
        self._fit(plan._replace(posterior=body), rows, other, seed)
        return Point(nn.Sequential(layer, body.to("cpu").network())).eval()

    def _fit(self, plan: Plan, train: Examples, held_out: Examples, seed: int) -> None:
        size = self.batch_size or batch_size_for(len(train.targets))
        epochs = self.epochs
        own: dict[str, Any] = {} if self.optimizer is None else {"optimizer": self.optimizer}
        if self.steps is not None:
            each = -(-len(train.targets) // size)
            epochs = min(self.epochs, max(6, round(self.steps / each)))
            own |= {"scheduler": _Cosine(epochs * each), "scheduler_interval": "step"}
        history = fit(
            plan.posterior,
            Augmented((train.inputs, train.targets)) if self.augment else train.data,
            plan.objective,
            epochs=epochs,
            batch_size=size,
            validation=held_out.data,
            early_stopping=self.patience,
            seed=seed,
            device=self.device,
            group=None,
            progress=False,
            **fit_arguments(plan, samples=self.samples, **own),
        )
        if history.stopped == "interrupted":
            raise KeyboardInterrupt

    def _network(self, seed: int) -> nn.Module:
        with seeded(seed):
            network = self.network()
            return network if self.own_network else prepared_network(self.method, network)


@dataclass(frozen=True)
class _Cosine:
    """A learning rate that rises for a moment and then falls to zero along a cosine."""

    steps: int

    def __call__(self, optimizer: Optimizer) -> LambdaLR:
        return LambdaLR(optimizer, self._factor)

    def _factor(self, step: int) -> float:
        share = min(1.0, (step + 1) / (self.steps + 1))
        return share / _WARM_UP if share < _WARM_UP else (1 + math.cos(math.pi * (share - _WARM_UP) / (1 - _WARM_UP))) / 2


def _table_parts(posterior: Posterior) -> tuple[TableInputs, nn.Module] | None:
    """Return the first layer and the rest of a network for tables with one value per weight."""
    parts = list(posterior.trainable_network().children()) if isinstance(posterior, Point) else []
    return (parts[0], parts[1]) if len(parts) == 2 and isinstance(parts[0], TableInputs) else None


def _outputs(layer: TableInputs, rows: Tensor) -> Tensor:
    return torch.cat([layer(part) for part in rows.split(_BLOCK)])


def batch_size_for(rows: int) -> int:
    """The number of rows a step: few for small data, so that an epoch has steps enough.

    Examples:
        >>> [batch_size_for(rows) for rows in (200, 3000, 20000, 100000)]
        [32, 128, 256, 512]
    """
    return next((size for most, size in ((600, 32), (1500, 64), (6000, 128), (30000, 256)) if rows < most), 512)
