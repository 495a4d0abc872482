"""How far an experiment is and how long it will still take: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Progress"]


class Progress:
    """Progress of jobs that differ in cost.

    Args:
        console: where to show it; ``None`` shows nothing.
    """

    def __init__(self, console: Console | None) -> None:
        self._console = console
        self._count = 0

    @property
    def done(self) -> int:
        """How many trainings are behind us, those from before among them."""
        return self._count

    @contextmanager
    def over(self, cost: float, trainings: int) -> Iterator[None]:
        """Show ``trainings`` jobs, and others without a name, that cost ``cost`` together."""
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._cost, self._trainings, self._begin = cost, trainings, time.monotonic()
        self._spent, self._count, self._jobs = 0.0, 0, 0
        on = self._console is not None and self._console.is_terminal
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
        self._bar = Bar(*columns, console=self._console, transient=True, disable=not on)
        self._task = self._bar.add_task(f"training 0/{trainings}", total=cost, left="")
        with self._bar:
            yield

    def advance(self, cost: float, note: str | None = None) -> None:
        """A job is done; trainings have a note to show."""
        self._spent += cost
        self._jobs += 1
        self._count += note is not None
        left = (time.monotonic() - self._begin) * (self._cost / self._spent - 1)
        # After the first job alone the estimate would forget those that other workers have nearly finished.
        words = f"about {_clock(left)} left" if self._jobs > 1 else ""
        self._update(words)
        if self._console is not None and not self._console.is_terminal and note is not None:
            width = len(str(self._trainings))
            self.note(f"[{self._count:>{width}}/{self._trainings}] {', '.join(filter(None, [note, words]))}")

    def skip(self, cost: float, *, training: bool = False) -> None:
        """A job need not be done, because its result is known: it takes no time, and tells nothing about the others'."""
        self._cost -= cost
        self._count += training
        self._update("")

    def note(self, line: str) -> None:
        """A line that stays, above the bar where there is one."""
        if self._console is not None:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _update(self, left: str) -> None:
        title = f"training {self._count}/{self._trainings}" if self._count < self._trainings else "testing"
        self._bar.update(self._task, total=self._cost, completed=self._spent, description=title, left=left)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"
