"""The progress of a sweep and the time left: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from calibayes.terminal import ProgressDisplay
from calibayes.wording import clock

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["SweepProgress"]


class SweepProgress:
    """Progress of jobs that differ in cost; ``done`` of those that are counted are finished, including earlier ones.

    A counted job is called ``what``, and the time after them ``then``. ``None`` as console shows nothing.
    """

    def __init__(self, console: Console | None, what: str = "trial", then: str = "done") -> None:
        self._console, self._what, self._then = console, what, then
        self._display = ProgressDisplay(console)
        self.done = 0

    @contextmanager
    def over(self, cost: float, total: int) -> Iterator[None]:
        """Show ``total`` counted jobs, and others that are not counted, which all together cost ``cost``."""
        self._cost, self._total, self._begin = cost, total, time.monotonic()
        self._spent, self.done, self._jobs = 0.0, 0, 0
        with self._display:
            self._display.begin(f"{self._what} 0/{total}", cost)
            yield

    def advance(self, cost: float, note: str | None = None, *, keep: bool = False) -> None:
        """Count a finished job if it has a note, which is shown, on a terminal only with ``keep``."""
        self._spent += cost
        self._jobs += 1
        self.done += note is not None
        left = (time.monotonic() - self._begin) * (self._cost / self._spent - 1)
        # After the first job alone, the estimate would ignore those that other workers have nearly finished.
        words = f"about {clock(left)} left" if self._jobs > 1 else ""
        self._update(words)
        if self._console is not None and note is not None and (keep or not self._console.is_terminal):
            width = len(str(self._total))
            self.note(f"[{self.done:>{width}}/{self._total}] {', '.join(filter(None, [note, words]))}")

    def skip(self, cost: float, *, counted: bool = False) -> None:
        """Leave out a job whose result is known: it takes no time, so it must not affect the estimate for the others."""
        self._cost -= cost
        self.done += counted
        self._update("")

    def note(self, line: str) -> None:
        """Print a line that stays, above the bar if there is one."""
        self._display.note(line)

    def _update(self, left: str) -> None:
        title = f"{self._what} {self.done}/{self._total}" if self.done < self._total else self._then
        self._display.update(self._spent, total=self._cost, description=title, detail=left)
