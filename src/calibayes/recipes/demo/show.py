"""The demo from its first word to its last."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console, Group
from rich.text import Text

from calibayes.recipes.compare.folder import prepare
from calibayes.recipes.compare.progress import Progress
from calibayes.recipes.compare.settings import Settings
from calibayes.recipes.compare.workers import default_workers
from calibayes.recipes.demo.files import FILES, write
from calibayes.recipes.demo.run import run_demo
from calibayes.recipes.demo.words import closing_words, opening_words, table

__all__ = ["show"]

_WIDTH = 110  # of what is no terminal


def show(
    settings: Settings, folder: Path, *, console: Console, aside: Console, command: str, workers: int | None = None
) -> None:
    """Run the demo, print what it finds, and write it down.

    Args:
        settings: what to train.
        folder: where the files go; it is made if need be.
        console: where results are printed.
        aside: where progress is shown.
        command: what the user typed, for the record.
        workers: processes at a time, as in `run_demo`.
    """
    prepare(folder)
    workers = default_workers() if workers is None else workers
    aside.print(opening_words(settings, workers), soft_wrap=True)
    results = run_demo(settings, workers=workers, progress=Progress(aside))
    found = Group(table(results), Text(closing_words(results)))
    text = io.StringIO()
    Console(file=text, width=_WIDTH, color_system=None, force_terminal=False, highlight=False).print(found)
    printed = "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())
    if console.is_terminal:
        console.print(found)
    else:
        console.out(printed, end="", highlight=False)
    write(results, folder, printed=printed, command=command)
    width = max(len(str(folder / name)) for name in FILES)
    lines = [f"  {folder / name!s:<{width}}  {what}" for name, what in FILES.items()]
    console.print(
        "\n".join(["", f"Done in {results.wall_seconds:.0f} s. Written:", *lines, "", *_next_steps(folder)]),
        soft_wrap=True,
        markup=False,
    )


def _next_steps(folder: Path) -> list[str]:
    return [
        "Next:",
        f"  open {folder / 'reliability.png'}: bars below the dashed line mean too sure",
        "  your own network: ten lines in the README",
        "  the command line: calibayes --help (after `. .venv/bin/activate`, if `make` set it up)",
    ]
