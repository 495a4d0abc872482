"""A training whose loop is a framework's: what the posterior is told of it, and the average of the weights."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, final

from torch import Tensor

from calibayes.data.sources import Batch
from calibayes.errors import CheckpointError
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.randomness import preserved_global_state
from calibayes.training.norm_statistics import EpochBatches, exchange_buffers, member_norm_statistics, replaced_buffers
from calibayes.training.training_device import on_device
from calibayes.training.weight_averaging import Averaging, WeightAverage, check_averaging

__all__ = ["FrameworkRun", "TrainingData", "check_saved_average", "checked_averaging"]


class TrainingData(EpochBatches, Protocol):
    """Training data that can be read again, beside the framework's own loop."""

    def ordered(self) -> Iterator[Batch]:
        """All batches in the data's own order."""
        ...


@final
class FrameworkRun:
    """Tells a posterior what happens in a training that Lightning or transformers runs, and averages its weights.

    The places are those of `calibayes.fit`; epochs count from 1.

    Args:
        posterior: what is trained.
        averaging: the rule for the average of the weights, or ``None``.
        data: returns the training data; called only where they are needed.
        seed: that of the training.
    """

    def __init__(self, posterior: Posterior, averaging: Averaging | None, data: Callable[[], TrainingData], seed: int) -> None:
        self._posterior, self._rule, self._data, self._seed = posterior, averaging, data, seed
        self._average: WeightAverage | None = None
        self._replaced: dict[str, Tensor] | None = None

    def begin(self, epochs: int, *, resumed: bool, saved: Mapping[str, Any] | None = None) -> None:
        """Before the first epoch.

        Args:
            epochs: how many there will be.
            resumed: whether the posterior has its state from a checkpoint; then it keeps that state.
            saved: what `state` gave for this checkpoint.
        """
        check_averaging(self._rule, epochs, self._posterior)
        if not resumed:
            for member in self._posterior.members:
                member.check_epochs(epochs)
        state = _cloned(self._posterior) if resumed else None
        self._posterior.begin(epochs)
        if state is not None:
            self._posterior.load_state_dict(state)
        if self._rule is not None:
            self._average = WeightAverage(self._rule, self._posterior, self._statistics)
            if saved is not None and saved["average"] is not None:
                self._average.load(saved["average"])

    def after_step(self, epoch: int) -> None:
        """After an optimiser step."""
        self._posterior.after_step()
        if self._average is not None:
            self._average.update("step", epoch)

    def after_epoch(self, epoch: int) -> None:
        """After the last optimiser step of an epoch, before anyone looks at the posterior or saves it."""
        self._posterior.after_epoch()
        if self._average is not None:
            self._average.update("epoch", epoch)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The average in place of the weights for a while, if there is one."""
        if self._replaced is not None:
            yield
        elif self._average is not None:
            with self._average.installed():
                yield
        else:
            with replaced_buffers(self._posterior, self._own_statistics):
                yield

    def finish(self, *, keep_weights: bool = False) -> None:
        """At the end of training: the average takes the place of the weights for good, and the posterior is told.

        Args:
            keep_weights: leave the weights as they are; say, because those of the best epoch have been loaded.
        """
        self._posterior.train()
        if keep_weights:
            self._average = None
        if self._average is not None:
            self._replaced = _cloned(self._posterior)
            self._average.install()
        exchange_buffers(self._posterior, self._own_statistics())
        with preserved_global_state(self._posterior.device):
            self._posterior.finish(self._batches)

    def state(self) -> dict[str, Any] | None:
        """Return what a checkpoint holds beside the posterior, whose weights in it are the average; ``None`` without a rule.

        ``weights`` is the posterior's state that training goes on from.
        """
        if self._rule is None:
            return None
        average, weights = None, None
        if self._average is not None:
            average = self._average.state()
            weights = dict(self._posterior.state_dict()) if self._replaced is None else self._replaced
        return {"rule": repr(self._rule), "average": average, "weights": weights}

    def _batches(self) -> Iterator[Batch]:
        device = self._posterior.device
        return (on_device(batch, device) for batch in self._data().ordered())

    def _own_statistics(self) -> dict[str, Tensor]:
        """Those of a posterior that predicts with an average of its own."""
        return self._statistics() if any(member.needs_statistics for member in self._posterior.members) else {}

    def _statistics(self) -> dict[str, Tensor]:
        """Those of batch norms at the average; frameworks look at the posterior in evaluation mode."""
        training = self._posterior.training
        self._posterior.train()
        try:
            return member_norm_statistics(self._posterior, self._data, self._seed)
        finally:
            self._posterior.train(training)


def checked_averaging(averaging: Averaging | None) -> Averaging | None:
    """``averaging`` itself, or an error if it is no rule; how many epochs there will be is not known yet."""
    check_averaging(averaging, sys.maxsize)
    return averaging


def check_saved_average(saved: Mapping[str, Any] | None, averaging: Averaging | None, place: str) -> None:
    """Raise `CheckpointError` unless a checkpoint was written with the same rule for averages."""
    then, now = None if saved is None else saved["rule"], None if averaging is None else repr(averaging)
    if then != now:
        raise CheckpointError(
            f"{place} belongs to another training: `averaging` was {then} there and is {now} here. "
            "Use another checkpoint, or the same `averaging`."
        )


def _cloned(posterior: Posterior) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in posterior.state_dict().items()}
