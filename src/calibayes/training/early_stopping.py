"""Early stopping on a validation metric, which gives the best weights back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from torch import Tensor

from calibayes.checks import positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.training.training_hooks import cloned_state

__all__ = ["BestEpoch", "EarlyStopping", "stopping_rule"]

Monitor = Literal["nll", "refined-nll", "brier", "ece", "accuracy"]


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when a validation metric has not improved for a while, and restore the best weights.

    Args:
        patience: epochs without improvement before stopping.
        monitor: the metric; NLL by default, since a proper score cannot be gamed by giving up accuracy as ECE can.
            ``"refined-nll"`` is the NLL after temperature scaling fitted on the validation predictions
            (`calibayes.posthoc.refined_nll`): use it if a temperature is fitted after training, which would undo the
            overconfidence that the plain NLL stops at.

    Examples:
        >>> x = torch.randn(64, 3)
        >>> right, wrong = x.argmax(-1), x.argmin(-1)  # learning one makes the other worse
        >>> history = calibayes.fit(
        ...     calibayes.Point(torch.nn.Linear(3, 3)),
        ...     (x, right),
        ...     calibayes.Objective(),
        ...     epochs=50,
        ...     validation=(x, wrong),
        ...     early_stopping=calibayes.EarlyStopping(patience=2),
        ... )
        >>> history.stopped, history.best_epoch, len(history.epochs)
        ('early', 1, 3)
    """

    patience: int = 5
    monitor: Monitor = "nll"

    def __post_init__(self) -> None:
        positive_integer("patience", self.patience)
        if self.monitor not in get_args(Monitor):
            raise InvalidArgumentError(f"Expected `monitor` to be one of {get_args(Monitor)}, but got {self.monitor!r}.")


def stopping_rule(early_stopping: object) -> EarlyStopping | None:
    """Return ``early_stopping`` as a rule, or raise `InvalidArgumentError` unless it is one, a patience or ``None``."""
    if early_stopping is None or isinstance(early_stopping, EarlyStopping):
        return early_stopping
    try:
        return EarlyStopping(patience=positive_integer("early_stopping", early_stopping))
    except InvalidArgumentError:
        raise InvalidArgumentError(
            "Expected `early_stopping` to be an EarlyStopping, its `patience` as a positive integer, or None, but got "
            f"{early_stopping!r}."
        ) from None


class BestEpoch:
    """The best epoch so far and its weights."""

    def __init__(self, rule: EarlyStopping) -> None:
        self.rule = rule
        self.value: float | None = None
        self.epoch: int | None = None
        self.weights: dict[str, Tensor] = {}

    def update(self, posterior: Posterior, row: dict[str, float]) -> bool:
        """Keep the weights of an epoch that is the best so far; returns True when it is time to stop."""
        value = row[f"val_{self.rule.monitor.replace('-', '_')}"]
        epoch = int(row["epoch"])
        if self.value is None or (value > self.value if self.rule.monitor == "accuracy" else value < self.value):
            self.value, self.epoch = value, epoch
            self.weights = cloned_state(posterior)
        return self.epoch is not None and epoch - self.epoch >= self.rule.patience

    def restore(self, posterior: Posterior) -> int | None:
        """Give the posterior the best weights; returns their epoch."""
        if self.weights:
            posterior.load_state_dict(self.weights)
        return self.epoch

    def state(self) -> dict[str, Any]:
        """The state, for a checkpoint."""
        return {"value": self.value, "epoch": self.epoch, "weights": self.weights}

    def load(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self.value, self.epoch, self.weights = state["value"], state["epoch"], state["weights"]
