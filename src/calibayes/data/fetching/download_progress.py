"""The progress of a download: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self, TextIO, final

__all__ = ["DownloadProgress", "NoProgress", "ProgressBar", "ProgressLines", "megabytes", "progress_for"]

_STEPS = 10


class DownloadProgress(ABC):
    """Shows how far a download is; a context manager."""

    @abstractmethod
    def note(self, text: str) -> None:
        """Show a line of text."""

    @abstractmethod
    def begin(self, what: str, total: int | None) -> None:
        """Start, or start again, a transfer of ``total`` bytes."""

    @abstractmethod
    def reached(self, done: int) -> None:
        """Show that ``done`` bytes have arrived."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None


def progress_for(progress: bool | None = None, stream: TextIO | None = None) -> DownloadProgress:
    """Return what suits the stream: a `ProgressBar` on a terminal, otherwise `ProgressLines`.

    Args:
        progress: false for `NoProgress`, true for something to see; by default something to see on a terminal alone.
        stream: where to; by default standard error.
    """
    stream = sys.stderr if stream is None else stream
    if stream.isatty():
        return NoProgress() if progress is False else ProgressBar(stream)
    return ProgressLines(stream) if progress else NoProgress()


def megabytes(count: int) -> str:
    """A number of bytes for people.

    Examples:
        >>> megabytes(14_464_277), megabytes(1_092_520), megabytes(862_182_613)
        ('14.5 MB', '1.1 MB', '862 MB')
    """
    return f"{count / 1e6:.0f} MB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


@final
class NoProgress(DownloadProgress):
    """Shows nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def begin(self, what: str, total: int | None) -> None:
        """Nothing."""

    def reached(self, done: int) -> None:
        """Nothing."""


@final
class ProgressLines(DownloadProgress):
    """A line at the start and at every tenth of the way: for files and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._what, self._total, self._shown = "", 0, 0

    def note(self, text: str) -> None:
        """A line of its own."""
        print(text, file=self._stream, flush=True)

    def begin(self, what: str, total: int | None) -> None:
        """Show the name and the size of the file."""
        self._what, self._total, self._shown = what, total or 0, 0
        self.note(f"{what}: {megabytes(total)}" if total else what)

    def reached(self, done: int) -> None:
        """A line where another tenth is there."""
        tenths = _STEPS * done // self._total if self._total else 0
        if tenths > self._shown:
            self._shown = tenths
            self.note(f"{self._what}: {100 * tenths // _STEPS} %")


@final
class ProgressBar(DownloadProgress):
    """A bar with rate and time left, by rich."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(file=stream, highlight=False),
        )
        self._task: Any = None

    def note(self, text: str) -> None:
        """A line above the bar."""
        self._progress.console.print(text, markup=False, soft_wrap=True)

    def begin(self, what: str, total: int | None) -> None:
        """A new bar, in the place of one that was there."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(what, total=total)

    def reached(self, done: int) -> None:
        """Move the end of the bar."""
        self._progress.update(self._task, completed=done)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()
