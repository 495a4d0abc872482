"""Run a comparison, print what it finds, and write it down."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from rich.console import Console, Group
from rich.text import Text

from calibayes.checks import positive_integer
from calibayes.recipes.compare.comparison import compare
from calibayes.recipes.compare.comparison_settings import Settings
from calibayes.recipes.compare.comparison_task import FASHION_MNIST, Task
from calibayes.recipes.compare.contenders import Contender
from calibayes.recipes.compare.result_files import FILES, PREDICTIONS, RUNS, title_in, write
from calibayes.recipes.compare.summary_text import above_table, closing_words, opening_words, scores_table
from calibayes.recipes.compare.trainings import default_workers
from calibayes.sweeps.results_folder import prepare
from calibayes.sweeps.sweep_progress import SweepProgress
from calibayes.terminal import as_text, print_results, print_written

__all__ = ["begun", "run_and_print"]

_INTERRUPTED = 130  # what shells expect of a program that Ctrl-C ended


def run_and_print(
    settings: Settings,
    folder: Path,
    *,
    console: Console,
    aside: Console,
    command: str,
    task: Task = FASHION_MNIST,
    workers: int | None = None,
) -> None:
    """Compare, print what is found, and write it down; started again in the same folder, go on where it was.

    Results are printed on ``console`` and progress on ``aside``; ``command`` is what the user typed, for the record. Ctrl-C
    ends it: what is finished is kept, a line says how to go on, and the exit code is 130.
    """
    begin, say = time.monotonic(), partial(aside.print, soft_wrap=True, markup=False)
    workers, progress = begun(task, settings, folder, aside, workers)
    other = title_in(folder)
    if other not in (None, task.title):
        say(f"{folder} holds a comparison on {other}: its table and page will be replaced.")
    try:
        found = compare(task, settings, folder=folder / RUNS, workers=workers, progress=progress)
        words = Text(closing_words(found.verdict, found.differences, settings, task))
        tables = [scores_table(found.entries.values(), settings, task)]
        tables += [above_table(found.verdict)] if found.verdict.above else []
        shown = Group(*tables, words)
        print_results(console, shown)
        aside.print("Writing tables, diagrams and the page …")
        write(found, folder, printed=as_text(shown), command=command)
    except KeyboardInterrupt:
        say(f"Stopped. {progress.done} of {settings.trainings} trainings are kept in {folder}; to go on: {command}")
        raise SystemExit(_INTERRUPTED) from None
    print_written(console, folder, FILES, time.monotonic() - begin, _next_steps(folder, list(found.entries)[1]))


def begun(task: Task, settings: Settings, folder: Path, aside: Console, workers: int | None) -> tuple[int, SweepProgress]:
    """Make the folder and say what is about to happen; returns the number of workers, and where to show progress."""
    prepare(folder)
    workers = default_workers() if workers is None else positive_integer("workers", workers)
    aside.print(opening_words(task, settings, workers), soft_wrap=True)
    return workers, SweepProgress(aside, "training", "testing")


def _next_steps(folder: Path, example: Contender) -> list[str]:
    return [
        "Next:",
        f"  open {folder / 'report.html'}: every metric and diagram on one page",
        f"  every metric of one of them: calibayes evaluate {folder / PREDICTIONS / f'{example.slug}-seed0.npz'}",
    ]
