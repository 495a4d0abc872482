"""Show a training run in the terminal: the terms of its loss and the time left."""

from __future__ import annotations

import time
from typing import final

from calibayes.terminal import ProgressDisplay
from calibayes.training.history import StepTerms
from calibayes.wording import clock

__all__ = ["TrainingProgress"]

_EVERY = 0.1  # seconds
_SHORT = {"cross_entropy": "ce", "calibration": "aece"}
_FORMATS = {"kl": ".4g"}  # thousands at first


@final
class TrainingProgress:
    """Updates a `ProgressDisplay` at most ten times a second."""

    def __init__(self, display: ProgressDisplay, total_steps: int, epochs: int) -> None:
        self._display, self._total, self._epochs = display, total_steps, epochs
        self._start: tuple[float, int] | None = None
        self._shown = 0.0
        display.begin("training", total_steps)

    def update(self, epoch: int, step: int, terms: StepTerms) -> None:
        """Show step ``step`` of epoch ``epoch``, both counted from 1."""
        now = time.monotonic()
        if self._start is None:
            self._start = (now, step)
        if not self._display.on_terminal or now - self._shown < _EVERY:
            return
        self._shown = now
        since, first = self._start
        left = "?" if step == first else clock((now - since) / (step - first) * (self._total - step))
        shown = [f"{_SHORT.get(name, name)} {value:{_FORMATS.get(name, '.4f')}}" for name, value in terms.values.items()]
        detail = "  ".join([f"left {left}", f"loss {terms.total:.4f}", *shown])
        self._display.update(step, description=f"epoch {epoch}/{self._epochs}", detail=detail)

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._display.note(text)
