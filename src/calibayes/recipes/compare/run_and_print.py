"""Run a comparison, print the results and write them to files."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.text import Text

from calibayes.checks import positive_integer
from calibayes.recipes.compare.advice import Advice, advise
from calibayes.recipes.compare.comparison import Comparison, compare
from calibayes.recipes.compare.comparison_settings import Settings
from calibayes.recipes.compare.comparison_task import FASHION_MNIST, Task
from calibayes.recipes.compare.comparison_text import above_table, closing_words, opening_words, scores_table
from calibayes.recipes.compare.result_files import FILES, PREDICTIONS, RUNS, title_in, write
from calibayes.recipes.compare.trainings import default_workers, with_suitable_baselines
from calibayes.sweeps.results_folder import prepare
from calibayes.sweeps.sweep_progress import SweepProgress
from calibayes.terminal import EXIT_INTERRUPTED, WIDTH, as_text, print_line, print_results, print_written

__all__ = ["begun", "run_and_print"]


def run_and_print(
    settings: Settings,
    folder: Path,
    *,
    console: Console,
    aside: Console,
    command: str,
    task: Task = FASHION_MNIST,
    workers: int | None = None,
    train_words: Sequence[str] | None = None,
) -> None:
    """Compare, print the results and write them to files; started again in the same folder, continue.

    Results are printed on ``console`` and progress on ``aside``; ``command`` is the command as the user typed it, and
    ``train_words`` are those of ``calibayes train`` on the same data. After Ctrl-C, finished trainings are kept, a line says
    how to continue, and the exit code is 130.
    """
    begin = time.monotonic()
    settings, notes = with_suitable_baselines(task, settings)
    for note in notes:
        print_line(aside, note)
    workers, progress = begun(task, settings, folder, aside, workers)
    other = title_in(folder)
    if other not in (None, task.title):
        print_line(aside, f"{folder} contains a comparison on {other}: its table and page will be replaced.")
    try:
        comparison = compare(task, settings, folder=folder / RUNS, workers=workers, progress=progress)
        advice = advise(comparison, train_words)
        tables = [scores_table(comparison.entries.values(), settings, task)]
        tables += [above_table(comparison)] if comparison.verdict.above else []
        results = Group(*tables, Text(closing_words(comparison)))
        print_line(console, advice.text(console.width if console.is_terminal else WIDTH))
        print_results(console, results)
        print_line(aside, "Writing tables, diagrams and the page …")
        printed = f"{advice.text(WIDTH)}\n{as_text(results)}"
        write(comparison, folder, advice=advice, printed=printed, command=command)
    except KeyboardInterrupt:
        print_line(
            aside, f"Stopped. {progress.done} of {settings.trainings} trainings are kept in {folder}. To continue: {command}"
        )
        raise SystemExit(EXIT_INTERRUPTED) from None
    print_written(console, folder, FILES, time.monotonic() - begin, _next_steps(comparison, advice, folder))


def _next_steps(comparison: Comparison, advice: Advice, folder: Path) -> list[str]:
    """The next commands, for the contender that is recommended."""
    use = comparison.verdict.recommended or next(iter(comparison.entries))
    predictions = shlex.quote(str(folder / PREDICTIONS / f"{use.slug}-seed0.npz"))
    return [
        "Next:",
        *(f"  {title[0].lower()}{title[1:]} {line}" for title, line in advice.commands if line.startswith("calibayes ")),
        f"  open {folder / 'report.html'}: every metric and diagram on one page",
        f"  every metric of {use}: calibayes evaluate {predictions}",
    ]


def begun(task: Task, settings: Settings, folder: Path, aside: Console, workers: int | None) -> tuple[int, SweepProgress]:
    """Make the folder and print what will be trained; return the number of workers and the progress display."""
    prepare(folder)
    workers = default_workers() if workers is None else positive_integer("workers", workers)
    print_line(aside, opening_words(task, settings, workers))
    return workers, SweepProgress(aside, "training", "testing")
