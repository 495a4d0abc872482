"""Hooks that every training loop calls (that of `calibayes.fit`, Lightning's, transformers'): they update the posterior.

They also keep the average of the weights, and put it in place of the weights for validation and at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, final

from torch import Tensor, nn

from calibayes.data.sources import Batch, as_batch
from calibayes.errors import CheckpointError
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.randomness import preserved_global_state
from calibayes.training.norm_statistics import TrainingData, exchange_buffers, member_norm_statistics, replaced_buffers
from calibayes.training.training_inputs import on_device
from calibayes.training.weight_averaging import Averaging, WeightAverage, check_averaging

__all__ = ["LoaderData", "TrainingHooks", "check_saved_average", "cloned_state"]


class LoaderData:
    """Training data in the batches and the order that a loader has them; ``name`` is what messages call it."""

    def __init__(self, loader: Iterable[Any], name: str) -> None:
        self._loader, self._name = loader, name

    def epoch(self, seed: int, epoch: int) -> Iterator[Batch]:
        """All batches, in the same order for every seed and epoch."""
        return self.ordered()

    def ordered(self) -> Iterator[Batch]:
        """All batches."""
        return (as_batch(batch, self._name) for batch in self._loader)


@final
class TrainingHooks:
    """Tells a posterior about the progress of its training, and averages its weights; epochs count from 1.

    Args:
        posterior: what is trained.
        averaging: the rule for the average of the weights, or ``None``.
        data: returns the training data; called only where they are needed.
        seed: that of the training.
        micro_batch_size: how many examples go through the network at once, at most, to take the statistics of batch norms.
    """

    def __init__(
        self,
        posterior: Posterior,
        averaging: Averaging | None,
        data: Callable[[], TrainingData],
        seed: int,
        micro_batch_size: int | None = None,
    ) -> None:
        self._posterior, self._rule, self._data, self._seed = posterior, averaging, data, seed
        self._micro_batch_size = micro_batch_size
        self.average: WeightAverage | None = None
        self._replaced: dict[str, Tensor] | None = None

    def begin(self, epochs: int, *, resumed: bool = False, saved: Mapping[str, Any] | None = None) -> None:
        """Call before the first epoch.

        Args:
            epochs: how many there will be.
            resumed: whether the posterior has its state from a checkpoint; then it keeps that state.
            saved: what `state` gave for this checkpoint.
        """
        check_averaging(self._rule, epochs, self._posterior)
        if not resumed:
            for member in self._posterior.members:
                member.check_epochs(epochs)
        state = cloned_state(self._posterior) if resumed else None
        self._posterior.begin(epochs)
        if state is not None:
            self._posterior.load_state_dict(state)
        if self._rule is not None:
            self.average = WeightAverage(self._rule, self._posterior, self._statistics)
            if saved is not None and saved["average"] is not None:
                self.average.load(saved["average"])

    def after_step(self, epoch: int) -> None:
        """Call after an optimiser step."""
        self._posterior.after_step()
        if self.average is not None:
            self.average.update("step", epoch)

    def after_epoch(self, epoch: int) -> None:
        """Call after the last optimiser step of an epoch, before anyone looks at the posterior or saves it."""
        self._posterior.after_epoch()
        if self.average is not None:
            self.average.update("epoch", epoch)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Put the average, if there is one, in place of the weights within this context."""
        if self._replaced is not None:
            yield
        elif self.average is not None:
            with self.average.installed():
                yield
        else:
            with replaced_buffers(self._posterior, self._own_statistics):
                yield

    def finish(self, *, keep_weights: bool = False) -> None:
        """Call at the end: the average replaces the weights for good, and the posterior learns that training is over.

        ``keep_weights`` leaves the weights as they are, say because those of the best epoch have been loaded.
        """
        self._posterior.train()
        if keep_weights:
            self.average = None
        if self.average is not None:
            self._replaced = cloned_state(self._posterior)
            self.average.install()
        exchange_buffers(self._posterior, self._own_statistics())
        device = self._posterior.device
        with preserved_global_state(device):
            self._posterior.finish(lambda: (on_device(batch, device) for batch in self._data().ordered()))

    def state(self) -> dict[str, Any] | None:
        """Return what a checkpoint holds beside the posterior, whose weights in it are the average; ``None`` without a rule.

        ``weights`` is the posterior's state that training continues from.
        """
        if self._rule is None:
            return None
        average, weights = None, None
        if self.average is not None:
            average = self.average.state()
            weights = dict(self._posterior.state_dict()) if self._replaced is None else self._replaced
        return {"rule": repr(self._rule), "average": average, "weights": weights}

    def _own_statistics(self) -> dict[str, Tensor]:
        """Those of a posterior that predicts with an average that it takes itself."""
        return self._statistics() if any(member.needs_statistics for member in self._posterior.members) else {}

    def _statistics(self) -> dict[str, Tensor]:
        """Those of batch norms at the average; frameworks look at the posterior in evaluation mode."""
        training = self._posterior.training
        self._posterior.train()
        try:
            return member_norm_statistics(self._posterior, self._data, self._seed, self._micro_batch_size)
        finally:
            self._posterior.train(training)


def check_saved_average(saved: Mapping[str, Any] | None, averaging: Averaging | None, place: str) -> None:
    """Raise `CheckpointError` unless a checkpoint was written with the same rule for averages."""
    then, now = None if saved is None else saved["rule"], None if averaging is None else repr(averaging)
    if then != now:
        raise CheckpointError(
            f"{place} belongs to another training: `averaging` was {then} there and is {now} here. "
            "Use another checkpoint, or the same `averaging`."
        )


def cloned_state(module: nn.Module) -> dict[str, Tensor]:
    """A copy of everything that a posterior or a network would save."""
    return {name: value.detach().clone() for name, value in module.state_dict().items()}
