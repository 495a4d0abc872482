"""Printing to the terminal: consoles, plain text, the progress display and exit codes.

rich is imported where something is first shown, so that ``import calibayes`` does not load it.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO, final

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = [
    "EXIT_FAILED",
    "EXIT_INTERRUPTED",
    "EXIT_INVALID_INPUT",
    "ProgressDisplay",
    "as_text",
    "print_error",
    "print_line",
    "print_results",
    "print_written",
    "progress_console",
    "status_console",
    "stdout_console",
    "typed_command",
]

EXIT_FAILED = 1
"""Something that was asked for could not be done, such as one of many trials."""
EXIT_INVALID_INPUT = 2
"""The command or its files cannot be used as they are; nothing was done."""
EXIT_INTERRUPTED = 130
"""Ctrl-C ended the program: the code that shells expect."""

_WIDTH = 110  # where there is no terminal


def stdout_console() -> Console:
    """Return a console for results."""
    from rich.console import Console

    return Console(highlight=False)


def status_console(stream: TextIO | None = None) -> Console:
    """Return a console for progress and remarks, on standard error unless a stream is given."""
    from rich.console import Console

    return Console(stderr=True, highlight=False) if stream is None else Console(file=stream, highlight=False)


def progress_console(progress: bool | None, stream: TextIO | None = None) -> Console | None:
    """Return where to show progress, or None for nowhere.

    Args:
        progress: whether to show it; by default if the stream is a terminal.
        stream: standard error by default.
    """
    shown = (sys.stderr if stream is None else stream).isatty() if progress is None else progress
    return status_console(stream) if shown else None


def print_line(console: Console, text: str) -> None:
    """Print text as it is, in lines of any length and without rich's markup."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def print_error(error: object) -> None:
    """Print an error as one line on standard error, whatever it holds, and its notes below."""
    print(f"calibayes: {' '.join(str(error).split())}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)


def as_text(results: RenderableType, width: int = _WIDTH) -> str:
    """Return what a console would show, without colours and without blanks at the ends of lines."""
    from rich.console import Console

    text = io.StringIO()
    Console(file=text, width=width, color_system=None, force_terminal=False, highlight=False).print(results)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def print_results(console: Console, results: RenderableType, width: int = _WIDTH) -> None:
    """Print results: fitted to a terminal, and as `as_text` has them elsewhere."""
    if console.is_terminal:
        console.print(results)
    else:
        console.out(as_text(results, width), end="", highlight=False)


def print_written(console: Console, folder: Path, files: Mapping[str, str], seconds: float, then: Sequence[str]) -> None:
    """Print how long it took, which files there are now, and what to do next."""
    width = max(len(str(folder / name)) for name in files)
    lines = [f"  {folder / name!s:<{width}}  {what}" for name, what in files.items()]
    print_line(console, "\n".join(["", f"Done in {seconds:.0f} s. Written:", *lines, "", *then]))


def typed_command() -> str:
    """Return the command as the user typed it, for records and for advice on how to go on."""
    return shlex.join(["calibayes", *sys.argv[1:]])


@final
class ProgressDisplay:
    """A progress bar on a terminal; elsewhere only the lines that `note` prints.

    Args:
        console: where to show it; ``None`` shows nothing.
        in_bytes: whether what is counted are bytes, shown with their rate.
        keep: whether the bar stays when all is done.

    Examples:
        >>> with ProgressDisplay(None) as display:
        ...     display.begin("training", total=10)
        ...     display.update(3, detail="loss 0.7")
    """

    def __init__(self, console: Console | None, *, in_bytes: bool = False, keep: bool = False) -> None:
        self.console = console
        self.on_terminal = console is not None and console.is_terminal
        self._bar: Any = None
        self._task: Any = None
        if not self.on_terminal:
            return
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        timing = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()) if in_bytes else (TimeElapsedColumn(),)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            *timing,
            TextColumn("{task.fields[detail]}", markup=False),
            console=console,
            transient=not keep,
        )

    def begin(self, description: str, total: float | None) -> None:
        """Start a bar, in the place of one that was there."""
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(description, total=total, detail="")

    def update(self, completed: float, **fields: Any) -> None:
        """Show how much is done; ``fields`` may change the ``description``, the ``total`` and the ``detail`` after the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=completed, **fields)

    def note(self, text: str) -> None:
        """Print a line that stays, above the bar where there is one."""
        if self.console is not None:
            with contextlib.suppress(OSError):  # a log on a full disk is no reason to stop the work
                print_line(self.console, text)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
