"""The progress of a download: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self, TextIO, final

from calibayes.terminal import ProgressDisplay, status_console
from calibayes.wording import megabytes

__all__ = ["DownloadProgress", "NoProgress", "ProgressBar", "ProgressLines", "progress_for"]

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
        self._display = ProgressDisplay(status_console(stream), in_bytes=True, keep=True)

    def note(self, text: str) -> None:
        """A line above the bar."""
        self._display.note(text)

    def begin(self, what: str, total: int | None) -> None:
        """A new bar, in the place of one that was there."""
        self._display.begin(what, total)

    def reached(self, done: int) -> None:
        """Move the end of the bar."""
        self._display.update(done)

    def __enter__(self) -> Self:
        self._display.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._display.__exit__(kind, error, trace)
