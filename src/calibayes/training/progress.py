"""A progress line that shows the terms and the time left, and keeps quiet when there is no terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from calibayes.training.step_terms import StepTerms

__all__ = ["Progress"]

_EVERY = 0.1
_SHORT = {"cross_entropy": "ce", "calibration": "aece"}
_FORMATS = {"kl": ".4g"}  # thousands at first


class Progress:
    """Rewrites one line on standard error, at most ten times a second."""

    def __init__(self, total_steps: int, epochs: int, enabled: bool | None) -> None:
        self._on = sys.stderr.isatty() if enabled is None else enabled
        self._total, self._epochs = total_steps, epochs
        self._start: tuple[float, int] | None = None
        self._shown = 0.0
        self._width = 0

    def update(self, epoch: int, step: int, terms: StepTerms) -> None:
        """Show step ``step`` of epoch ``epoch``, both counted from 1."""
        now = time.monotonic()
        if self._start is None:
            self._start = (now, step)
        if not self._on or now - self._shown < _EVERY:
            return
        self._shown = now
        since, first = self._start
        left = "?" if step == first else _clock((now - since) / (step - first) * (self._total - step))
        shown = "  ".join(
            f"{_SHORT.get(name, name)} {value:{_FORMATS.get(name, '.4f')}}" for name, value in terms.values.items()
        )
        self._write(f"epoch {epoch}/{self._epochs}  step {step}/{self._total}  loss {terms.total:.4f}  {shown}  left {left}")

    def note(self, text: str) -> None:
        """Leave a line behind."""
        if self._on:
            self._write(text)
            sys.stderr.write("\n")
            self._width = 0

    def _write(self, line: str) -> None:
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._on and self._width:
            sys.stderr.write("\n")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
