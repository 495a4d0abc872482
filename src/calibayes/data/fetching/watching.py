"""How a download is shown: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Protocol, TextIO

from calibayes.terminal import ProgressDisplay, status_console
from calibayes.wording import megabytes

__all__ = ["Bar", "Lines", "Silence", "Watcher", "megabytes", "watcher"]

_STEPS = 10


class Watcher(Protocol):
    """Is told how far a download is."""

    def note(self, text: str) -> None:
        """Something that is worth a line."""
        ...

    def begin(self, what: str, total: int | None) -> None:
        """A transfer of ``total`` bytes starts, or starts again."""
        ...

    def reached(self, done: int) -> None:
        """``done`` bytes are there."""
        ...

    def __enter__(self) -> Watcher: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def watcher(progress: bool | None = None, stream: TextIO | None = None) -> Watcher:
    """What suits the stream: a `Bar` on a terminal, otherwise `Lines`.

    Args:
        progress: false for `Silence`, true for something to see; by default something to see on a terminal alone.
        stream: where to; by default standard error.
    """
    stream = sys.stderr if stream is None else stream
    if stream.isatty():
        return Silence() if progress is False else Bar(stream)
    return Lines(stream) if progress else Silence()


class Silence:
    """Shows nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def begin(self, what: str, total: int | None) -> None:
        """Nothing."""

    def reached(self, done: int) -> None:
        """Nothing."""

    def __enter__(self) -> Silence:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


class Lines(Silence):
    """A line at the start and at every tenth of the way: for files and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._what, self._total, self._shown = "", 0, 0

    def note(self, text: str) -> None:
        """A line of its own."""
        print(text, file=self._stream, flush=True)

    def begin(self, what: str, total: int | None) -> None:
        """What comes, and how large it is."""
        self._what, self._total, self._shown = what, total or 0, 0
        self.note(f"{what}: {megabytes(total)}" if total else what)

    def reached(self, done: int) -> None:
        """A line where another tenth is there."""
        tenths = _STEPS * done // self._total if self._total else 0
        if tenths > self._shown:
            self._shown = tenths
            self.note(f"{self._what}: {100 * tenths // _STEPS} %")


class Bar(Silence):
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
        """Where the bar ends."""
        self._display.update(done)

    def __enter__(self) -> Bar:
        self._display.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._display.__exit__(kind, error, trace)
