"""Averages of the weights over training: the rules, and the average that a run keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, final

import torch
from torch import Tensor

from calibayes.checks import is_real, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.training.norm_statistics import exchange_buffers

__all__ = ["EMA", "Averaging", "EqualAverage", "WeightAverage", "check_averaging"]


class Averaging(ABC):
    """A rule for averaging the weights: `EMA` or `EqualAverage`."""

    @abstractmethod
    def share(self, moment: Literal["step", "epoch"], epoch: int, count: int) -> float | None:
        """Return the share of the newest weights in the average, or ``None`` if these do not count.

        They are those after a step or an epoch (``moment``) of epoch ``epoch``, from 1; ``count`` sets have counted before.
        """


@final
@dataclass(frozen=True)
class EMA(Averaging):
    r"""An exponential moving average of the weights, updated after every step.

    After step $t$ the average becomes $\bar\varphi_t = d_t \bar\varphi_{t-1} + (1 - d_t) \varphi_t$, starting from the initial
    weights. It is usually more accurate than the last weights and costs next to nothing. See Polyak and Juditsky,
    "Acceleration of Stochastic Approximation by Averaging" (1992).

    Args:
        decay: $d$, at least 0 and below 1. The average looks back over about $1 / (1 - d)$ steps: choose it so that this is a
            small part of the training.
        warm_up: use $d_t = \min(d, (1 + t) / (10 + t))$, so that the initial weights are soon forgotten.

    Examples:
        >>> data = torch.randn(64, 4), torch.arange(64) % 3
        >>> posterior = calibayes.MeanField(torch.nn.Linear(4, 3))
        >>> history = calibayes.fit(posterior, data, calibayes.Objective(), epochs=2, averaging=calibayes.EMA(0.9))
        >>> history.stopped
        'finished'
    """

    decay: float = 0.99
    warm_up: bool = True

    def __post_init__(self) -> None:
        if not is_real(self.decay) or not 0 <= self.decay < 1:
            raise InvalidArgumentError(f"Expected `decay` to be a number of at least 0 and below 1, but got {self.decay!r}.")
        if not isinstance(self.warm_up, bool):
            raise InvalidArgumentError(f"Expected `warm_up` to be True or False, but got {self.warm_up!r}.")

    def share(self, moment: Literal["step", "epoch"], epoch: int, count: int) -> float | None:
        """Return $1 - d_t$ after every step."""
        if moment == "epoch":
            return None
        step = count + 1
        return 1.0 - (min(self.decay, (1 + step) / (10 + step)) if self.warm_up else self.decay)


@final
@dataclass(frozen=True)
class EqualAverage(Averaging):
    """The plain mean of the weights from some epoch on: stochastic weight averaging (SWA, https://arxiv.org/abs/1803.05407).

    It suits a learning rate that stays high in the epochs that are averaged. Until the average begins, validation and early
    stopping see the weights themselves.

    Args:
        start_epoch: the first epoch (from 1) whose weights count.
        every: average the weights after each ``"epoch"`` or after each ``"step"``.

    Examples:
        >>> data = torch.randn(64, 4), torch.arange(64) % 3
        >>> posterior = calibayes.Point(torch.nn.Linear(4, 3))
        >>> rule = calibayes.EqualAverage(start_epoch=3)
        >>> history = calibayes.fit(posterior, data, calibayes.Objective(), epochs=6, averaging=rule)
        >>> len(history.epochs)
        6
    """

    start_epoch: int
    every: Literal["epoch", "step"] = "epoch"

    def __post_init__(self) -> None:
        positive_integer("start_epoch", self.start_epoch)
        if self.every not in ("epoch", "step"):
            raise InvalidArgumentError(f"Expected `every` to be 'epoch' or 'step', but got {self.every!r}.")

    def share(self, moment: Literal["step", "epoch"], epoch: int, count: int) -> float | None:
        """Return an equal share for all weights that count."""
        return 1.0 / (count + 1) if moment == self.every and epoch >= self.start_epoch else None


def check_averaging(averaging: object, epochs: int | None = None, posterior: Posterior | None = None) -> None:
    """Raise `InvalidArgumentError` unless ``averaging`` is ``None`` or a rule that begins within ``epochs``, if known."""
    if averaging is None:
        return
    for member in () if posterior is None else posterior.members:
        if member.averages_itself:
            raise InvalidArgumentError(
                f"A {type(member).__name__} averages the weights itself, so `averaging={averaging!r}` would have no effect. "
                "Leave it out."
            )
    if not isinstance(averaging, Averaging):
        raise InvalidArgumentError(
            f"Expected `averaging` to be an EMA or an EqualAverage, but got {averaging!r}. Example: `averaging=EMA(0.99)`."
        )
    if epochs is not None and isinstance(averaging, EqualAverage) and averaging.start_epoch > epochs:
        raise InvalidArgumentError(
            f"`averaging={averaging!r}` starts after the last epoch, `epochs={epochs}`, so nothing would be averaged. "
            "Use a smaller `start_epoch`."
        )


@final
class WeightAverage:
    """The average of a posterior's trained parameters in a run.

    Args:
        rule: which weights count, and how much.
        posterior: whose parameters are averaged; the average starts from their present values.
        statistics: called with the average in place; returns the buffers, by name, that belong to these weights.
    """

    def __init__(self, rule: Averaging, posterior: Posterior, statistics: Callable[[], Mapping[str, Tensor]]) -> None:
        self.rule = rule
        self._posterior, self._statistics = posterior, statistics
        self._parameters = [parameter.detach() for parameter in posterior.parameters()]
        self._vectors = [parameter.clone() for parameter in self._parameters]
        self._count = 0
        self._known: Mapping[str, Tensor] | None = None

    def update(self, moment: Literal["step", "epoch"], epoch: int) -> None:
        """Add the present weights, if they count at this moment of this epoch (from 1)."""
        share = self.rule.share(moment, epoch, self._count)
        if share is None:
            return
        torch._foreach_lerp_(self._vectors, self._parameters, share)
        self._count += 1
        self._known = None

    def install(self) -> dict[str, Tensor]:
        """Give the posterior the average and its statistics, if there is one; returns the buffers that they replaced."""
        if self._count == 0:
            return {}
        torch._foreach_copy_(self._parameters, self._vectors)
        if self._known is None:
            self._known = self._statistics()
        return exchange_buffers(self._posterior, self._known)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Give the posterior the average within this context; afterwards it has its own weights again, to the bit."""
        weights = [parameter.clone() for parameter in self._parameters]
        replaced: dict[str, Tensor] = {}
        try:
            replaced = self.install()
            yield
        finally:
            torch._foreach_copy_(self._parameters, weights)
            exchange_buffers(self._posterior, replaced)

    def state(self) -> dict[str, Any]:
        """The state, for a checkpoint."""
        return {"count": self._count, "vectors": self._vectors}

    def load(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self._count, self._known = state["count"], None
        torch._foreach_copy_(self._vectors, state["vectors"])
