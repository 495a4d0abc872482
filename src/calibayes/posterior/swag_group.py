r"""Groups that are trained as points and remember where training went: those of `calibayes.SWAG`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from torch import Tensor

from calibayes.checks import fraction, non_negative_integer, positive, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.posterior.flat import Layout
from calibayes.posterior.point_group import TrainedAsPoint

__all__ = ["AveragedGroup", "CollectionRule", "SWAGGroup"]


@final
@dataclass(frozen=True)
class CollectionRule:
    """The rule for collecting weights during training; see `calibayes.SWAG` for what each setting means."""

    start_epoch: float
    every: Literal["epoch", "step"] | int
    rank: int
    scale: float

    def __post_init__(self) -> None:
        if isinstance(self.start_epoch, float):
            fraction("start_epoch", self.start_epoch)
        else:
            positive_integer("start_epoch", self.start_epoch)
        if self.every not in ("epoch", "step"):
            if isinstance(self.every, str):
                raise InvalidArgumentError(f"Expected `every` to be 'epoch', 'step' or a step count, but got {self.every!r}.")
            positive_integer("every", self.every)
        if non_negative_integer("rank", self.rank) == 1:
            raise InvalidArgumentError("Expected `rank` to be 0 (variances alone) or at least 2, but got 1.")
        positive("scale", self.scale)

    def first(self, epochs: int) -> int:
        """The first epoch (from 1) whose weights are collected, of ``epochs`` in all."""
        start = self.start_epoch
        return int(start * epochs) + 1 if isinstance(start, float) else start

    @property
    def steps(self) -> int | None:
        """The number of steps after which weights are collected; ``None`` if after each epoch."""
        return None if self.every == "epoch" else 1 if self.every == "step" else int(self.every)


class _CollectingGroup(TrainedAsPoint, ABC):
    """A flat vector that is trained as a point; predictions use the average of what was collected, if anything was."""

    average: Tensor
    collected: Tensor
    epochs: Tensor
    steps: Tensor
    first: Tensor

    def __init__(self, name: str, layout: Layout, values: Tensor, collection: CollectionRule) -> None:
        super().__init__(name, layout, values)
        self.collection = collection
        self.register_buffer("average", values.clone())
        for counter in ("collected", "epochs", "steps"):
            self.register_buffer(counter, torch.tensor(0))
        known = not isinstance(collection.start_epoch, float)
        self.register_buffer("first", torch.tensor(collection.first(0) if known else 0))

    def mean(self) -> Tensor:
        """In training, and before anything is collected, the weights themselves; after that their average."""
        return self.theta if self.training or not int(self.collected) else self.average

    def begin(self, epochs: int) -> None:
        if int(self.first) == 0:
            self.first.fill_(self.collection.first(epochs))

    def after_step(self) -> None:
        steps = self.collection.steps
        if steps is None or int(self.epochs) + 1 < int(self.first):
            return
        self.steps += 1
        if int(self.steps) % steps == 0:
            self._collect()

    def after_epoch(self) -> None:
        self.epochs += 1
        if self.collection.steps is None and int(self.epochs) >= int(self.first):
            self._collect()

    @torch.no_grad()
    def _collect(self) -> None:
        count = int(self.collected) + 1
        before = self.theta.clone() if count == 1 else self.average.clone()
        self.average.copy_(before + (self.theta - before) / count)
        self.note(self.theta - before, self.theta - self.average)
        self.collected += 1

    @abstractmethod
    def note(self, before: Tensor, after: Tensor) -> None:
        """Remember how far newly collected weights are from the average before and after they count."""


@final
class AveragedGroup(_CollectingGroup):
    """A flat vector of weights without a distribution: predictions use their average."""

    bayesian: ClassVar[bool] = False

    def note(self, before: Tensor, after: Tensor) -> None:
        """Do nothing: the average is enough."""


@final
class SWAGGroup(_CollectingGroup):
    r"""A flat vector of weights: predictions draw from a Gaussian around their average.

    It holds the sum of squared deviations, taken as they come (Welford), and the last $K$ deviations from the running average.
    """

    squares: Tensor
    deviations: Tensor | None

    def __init__(self, name: str, layout: Layout, values: Tensor, collection: CollectionRule) -> None:
        super().__init__(name, layout, values, collection)
        self.register_buffer("squares", torch.zeros_like(values))
        rank = collection.rank
        self.register_buffer("deviations", values.new_zeros(rank, len(values)) if rank else None)
        self._width: Tensor | None = None

    def variance(self) -> Tensor:
        r"""The diagonal $\frac1T \sum_i \theta_i^2 - \bar\theta^2$ of the collected weights."""
        return self.squares / self.collected.clamp_min(1)

    def draw(self, generator: torch.Generator | None) -> Tensor:
        r"""In training the weights themselves; after that $\bar\theta + \sqrt{c}\,(\Sigma^{1/2} z_1 + D z_2/\sqrt{K-1})$."""
        count = int(self.collected)
        if self.training or count < 2:
            return self.mean()
        noise = torch.empty_like(self.average).normal_(generator=generator)
        drawn = self.average + noise.mul_(self._scaled_width())
        if self.deviations is not None:
            rank = min(count, len(self.deviations))
            z = torch.empty(rank, dtype=drawn.dtype, device=drawn.device).normal_(generator=generator)
            drawn += z.mul_((self.collection.scale / (rank - 1)) ** 0.5) @ self.deviations[:rank]
        return drawn

    def keep(self) -> None:
        self._width = None if self.training else self._scaled_width()

    def release(self) -> None:
        self._width = None

    def note(self, before: Tensor, after: Tensor) -> None:
        """Add to the variances, and replace the oldest deviation."""
        self.squares += before * after
        if self.deviations is not None:
            self.deviations[int(self.collected) % len(self.deviations)] = after

    def _scaled_width(self) -> Tensor:
        return (self.variance() * self.collection.scale).sqrt() if self._width is None else self._width
