"""Results on the terminal, and the same as plain text."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console, RenderableType

__all__ = ["as_text", "print_found", "print_written"]

_WIDTH = 110  # of what is no terminal


def as_text(found: RenderableType, width: int = _WIDTH) -> str:
    """What a console would show, without colours and without blanks at the ends of lines."""
    text = io.StringIO()
    Console(file=text, width=width, color_system=None, force_terminal=False, highlight=False).print(found)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def print_found(console: Console, found: RenderableType, width: int = _WIDTH) -> None:
    """Show results: fitted to a terminal, and as `as_text` has them elsewhere."""
    if console.is_terminal:
        console.print(found)
    else:
        console.out(as_text(found, width), end="", highlight=False)


def print_written(console: Console, folder: Path, files: Mapping[str, str], seconds: float, then: Sequence[str]) -> None:
    """Say how long it took, which files there are now, and what to do next."""
    width = max(len(str(folder / name)) for name in files)
    lines = [f"  {folder / name!s:<{width}}  {what}" for name, what in files.items()]
    console.print("\n".join(["", f"Done in {seconds:.0f} s. Written:", *lines, "", *then]), soft_wrap=True, markup=False)
