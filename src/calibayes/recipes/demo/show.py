"""The demo from its first word to its last."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console, Group
from rich.text import Text

from calibayes.checks import positive_integer
from calibayes.recipes.compare.settings import Settings
from calibayes.recipes.compare.task import FASHION_MNIST
from calibayes.recipes.compare.trainings import default_workers
from calibayes.recipes.compare.words import opening_words
from calibayes.recipes.demo.files import FILES, write
from calibayes.recipes.demo.run import run_demo, with_mixture
from calibayes.recipes.demo.words import closing_words, table
from calibayes.sweeps.results_folder import prepare
from calibayes.sweeps.sweep_progress import SweepProgress
from calibayes.terminal import as_text, print_results, print_written

__all__ = ["show"]


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
    begin = time.monotonic()
    prepare(folder)
    workers = default_workers() if workers is None else positive_integer("workers", workers)
    settings = with_mixture(settings)
    aside.print(opening_words(FASHION_MNIST, settings, workers), soft_wrap=True)
    results = run_demo(settings, workers=workers, progress=SweepProgress(aside, "training", "testing"))
    found = Group(table(results), Text(closing_words(results)))
    print_results(console, found)
    write(results, folder, printed=as_text(found), command=command)
    print_written(console, folder, FILES, time.monotonic() - begin, _next_steps(folder))


def _next_steps(folder: Path) -> list[str]:
    return [
        "Next:",
        f"  open {folder / 'reliability.png'}: bars below the dashed line mean too sure",
        "  your own network: twelve lines in the README",
        "  your own table, texts or images: calibayes train data.csv --target label -o model",
        "  the command line: calibayes --help (after `. .venv/bin/activate`, if `make` set it up)",
    ]
