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
    "WIDTH",
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
"""Part of the work failed, such as one of many trials."""
EXIT_INVALID_INPUT = 2
"""The command or its files are invalid; nothing was done."""
EXIT_INTERRUPTED = 130
"""Ctrl-C ended the program; shells expect this code."""

WIDTH = 110  # where there is no terminal


def stdout_console() -> Console:
    """Return a console for results."""
    from rich.console import Console

    return Console(highlight=False)


def status_console(stream: TextIO | None = None) -> Console:
    """Return a console for progress and remarks, on standard error unless a stream is given."""
    from rich.console import Console

    return Console(stderr=True, highlight=False) if stream is None else Console(file=stream, highlight=False)


def progress_console(progress: bool | None, stream: TextIO | None = None) -> Console | None:
    """Return a console for progress, or None to show nothing; by default, progress is shown if the stream is a terminal."""
    shown = (sys.stderr if stream is None else stream).isatty() if progress is None else progress
    return status_console(stream) if shown else None


def print_line(console: Console, text: str) -> None:
    """Print text as it is, in lines of any length, without rich's markup."""
    console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_error(error: object) -> None:
    """Print an error as one line on standard error, and its notes below."""
    print(f"calibayes: {' '.join(str(error).split())}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)


def as_text(results: RenderableType, width: int = WIDTH) -> str:
    """Return the text that a console would show, without colours and trailing blanks."""
    from rich.console import Console

    text = io.StringIO()
    Console(file=text, width=width, color_system=None, force_terminal=False, highlight=False).print(results)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def print_results(console: Console, results: RenderableType, width: int = WIDTH) -> None:
    """Print results: fitted to a terminal, and as `as_text` has them elsewhere."""
    if console.is_terminal:
        console.print(results)
    else:
        console.out(as_text(results, width), end="", highlight=False)


def print_written(console: Console, folder: Path, files: Mapping[str, str], seconds: float, then: Sequence[str]) -> None:
    """Print the time taken, the files written, and the next steps."""
    width = max(len(str(folder / name)) for name in files)
    lines = [f"  {folder / name!s:<{width}}  {what}" for name, what in files.items()]
    print_line(console, "\n".join(["", f"Done in {seconds:.0f} s. Written:", *lines, "", *then]))


def typed_command() -> str:
    """Return the command as the user typed it, for records and for advice on how to continue."""
    return shlex.join(["calibayes", *sys.argv[1:]])


@final
class ProgressDisplay:
    """A progress bar on a terminal; elsewhere only the lines that `note` prints.

    Args:
        console: where to show it; ``None`` shows nothing.
        in_bytes: count bytes, and show their rate.
        keep: leave the bar on the terminal at the end.

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
        from rich import progress as rich

        timing = (rich.DownloadColumn(), rich.TransferSpeedColumn(), rich.TimeRemainingColumn())
        self._bar = rich.Progress(
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(),
            *(timing if in_bytes else (rich.TimeElapsedColumn(),)),
            rich.TextColumn("{task.fields[detail]}", markup=False),
            console=console,
            transient=not keep,
        )

    def begin(self, description: str, total: float | None) -> None:
        """Start a bar, in place of the previous one."""
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(description, total=total, detail="")

    def update(self, completed: float, **fields: Any) -> None:
        """Show the progress; ``fields`` may change the ``description``, the ``total`` and the ``detail`` after the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=completed, **fields)

    def note(self, text: str) -> None:
        """Print a line that stays, above the bar if there is one."""
        if self.console is not None:
            with contextlib.suppress(OSError):  # a full disk under a log must not stop the work
                print_line(self.console, text)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
