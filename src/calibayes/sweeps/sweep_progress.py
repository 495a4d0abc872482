"""The progress of an experiment and the time left: a bar on a terminal, plain lines elsewhere."""

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
    """Progress of jobs that differ in cost.

    Args:
        console: where to show it; ``None`` shows nothing.
        what: what the jobs that are counted are called.
        then: what the time after them is called.
    """

    def __init__(self, console: Console | None, what: str = "trial", then: str = "done") -> None:
        self._console, self._what, self._then = console, what, then
        self._display = ProgressDisplay(console)
        self._count = 0

    @property
    def done(self) -> int:
        """The number of counted jobs that are done, including those done before."""
        return self._count

    @contextmanager
    def over(self, cost: float, total: int) -> Iterator[None]:
        """Show ``total`` jobs that are counted, and others that are not, which cost ``cost`` together."""
        self._cost, self._total, self._begin = cost, total, time.monotonic()
        self._spent, self._count, self._jobs = 0.0, 0, 0
        with self._display:
            self._display.begin(f"{self._what} 0/{total}", cost)
            yield

    def advance(self, cost: float, note: str | None = None, *, keep: bool = False) -> None:
        """A job is done; those that are counted have a note to show, on a terminal too if it is to ``keep``."""
        self._spent += cost
        self._jobs += 1
        self._count += note is not None
        left = (time.monotonic() - self._begin) * (self._cost / self._spent - 1)
        # After the first job alone the estimate would forget those that other workers have nearly finished.
        words = f"about {clock(left)} left" if self._jobs > 1 else ""
        self._update(words)
        if self._console is not None and note is not None and (keep or not self._console.is_terminal):
            width = len(str(self._total))
            self.note(f"[{self._count:>{width}}/{self._total}] {', '.join(filter(None, [note, words]))}")

    def skip(self, cost: float, *, counted: bool = False) -> None:
        """A job need not be done, because its result is known: it takes no time, and tells nothing about the others'."""
        self._cost -= cost
        self._count += counted
        self._update("")

    def note(self, line: str) -> None:
        """A line that stays, above the bar where there is one."""
        self._display.note(line)

    def _update(self, left: str) -> None:
        title = f"{self._what} {self._count}/{self._total}" if self._count < self._total else self._then
        self._display.update(self._spent, total=self._cost, description=title, detail=left)
