"""The record of a training run: every step's terms, every epoch's means and validation metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import torch

from calibayes.objective.terms import NamedValues

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["History", "StepTerms"]

_BEFORE_TERMS_HAD_NAMES = ("cross_entropy", "calibration", "kl")


@final
@dataclass(frozen=True)
class StepTerms(NamedValues[float]):
    """The terms of one step; each value is an attribute too. As a sequence: the total, the values, the number of examples.

    Attributes:
        total: the loss.
        values: the mean of the objective's loss, every term and ``"kl"`` by name, before their weights.
        examples: how many examples the batch had.

    Examples:
        >>> step = StepTerms(0.7, {"cross_entropy": 0.5, "calibration": 0.1, "kl": 12.0}, 32)
        >>> step.cross_entropy, list(step)
        (0.5, [0.7, 0.5, 0.1, 12.0, 32])
    """

    total: float
    values: dict[str, float]
    examples: int

    def __len__(self) -> int:
        return len(self.values) + 2

    def __getitem__(self, index: int) -> float:
        return (self.total, *self.values.values(), self.examples)[index]

    def __iter__(self) -> Iterator[float]:
        return iter((self.total, *self.values.values(), self.examples))


@dataclass
class History:
    """The record of a training run; two runs of the same call have equal histories.

    Attributes:
        epochs: one dict per epoch: means of the total and of every term, learning rate, and validation metrics (``val_…``).
        steps: one `StepTerms` per optimiser step.
        stopped: why training ended: ``"finished"``, ``"early"``, ``"callback"`` or ``"interrupted"``.
        best_epoch: the epoch (from 1) whose weights were restored by early stopping, if any.
        seconds: wall-clock time of every epoch; not part of equality.
        members: those of an ensemble's members, if they were trained one by one; ``epochs`` then has the means over members,
            and ``steps`` is empty.

    Examples:
        >>> data = torch.randn(64, 4), torch.arange(64) % 3
        >>> posterior = calibayes.Point(torch.nn.Linear(4, 3))
        >>> history = calibayes.fit(posterior, data, calibayes.Objective(), epochs=2, batch_size=16)
        >>> history.stopped, len(history.steps), history.steps[0].examples
        ('finished', 8, 16)
        >>> history.to_frame().shape, "cross_entropy" in history.to_frame()
        ((2, 5), True)
    """

    epochs: list[dict[str, float]] = field(default_factory=list)
    steps: list[StepTerms] = field(default_factory=list)
    stopped: str = "finished"
    best_epoch: int | None = None
    seconds: list[float] = field(default_factory=list, compare=False)
    members: list[History] = field(default_factory=list)

    @classmethod
    def of_members(cls, members: Sequence[History]) -> History:
        """The history of an ensemble whose members were trained one by one: means over members of what all of them have."""
        epochs = []
        for rows in zip(*(each.epochs for each in members), strict=False):
            shared = [name for name in rows[0] if all(name in row for row in rows)]
            epochs.append({name: sum(row[name] for row in rows) / len(rows) for name in shared})
        return cls(
            epochs=epochs,
            stopped=next((each.stopped for each in members if each.stopped != "finished"), "finished"),
            seconds=[sum(each) for each in zip(*(each.seconds for each in members), strict=False)],
            members=list(members),
        )

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the loss, the terms and the KL, in the order of their columns; none before the first step."""
        return tuple(self.steps[-1].values) if self.steps else ()

    def end_epoch(self, first_step: int, extra: dict[str, float], seconds: float) -> dict[str, float]:
        """Close an epoch that began at ``first_step``: means of its terms weighted by batch size, and ``extra``."""
        steps = self.steps[first_step:]
        examples = sum(step.examples for step in steps)
        names = ("total", *self.terms)
        means = {name: sum(getattr(step, name) * step.examples for step in steps) / examples for name in names}
        row = {"epoch": float(len(self.epochs) + 1), **means, **extra}
        self.epochs.append(row)
        self.seconds.append(seconds)
        return row

    def to_frame(self) -> pd.DataFrame:
        """The epochs as a data frame, indexed by epoch."""
        import pandas as pd

        frame = pd.DataFrame(self.epochs)
        return frame.astype({"epoch": int}).set_index("epoch") if len(frame) else frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw loss terms and validation metrics over epochs (`calibayes.displays.HistoryDisplay`); returns the loss's axes."""
        from calibayes.displays.training_curves import HistoryDisplay

        return HistoryDisplay.from_history(self).plot(ax).ax_

    def state(self) -> dict[str, Any]:
        """Everything, as numbers, names, lists and one tensor."""
        return {
            "epochs": self.epochs,
            "terms": list(self.terms),
            "steps": torch.tensor([list(step) for step in self.steps], dtype=torch.float64).reshape(-1, len(self.terms) + 2),
            "stopped": self.stopped,
            "best_epoch": self.best_epoch,
            "seconds": self.seconds,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> History:
        """The inverse of `state`; it also reads what version 0.1 wrote, which had no names."""
        others = {name: value for name, value in state.items() if name not in ("terms", "steps")}
        names = state.get("terms", _BEFORE_TERMS_HAD_NAMES)
        rows = ((total, dict(zip(names, values, strict=True)), n) for total, *values, n in state["steps"].tolist())
        return cls(**others, steps=[StepTerms(total, values, int(n)) for total, values, n in rows])
