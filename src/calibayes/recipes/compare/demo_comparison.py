"""The demo: a small comparison of the paper's four schemes and a mixture, without temperatures or a recommendation."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.text import Text

from calibayes.methods import method_named
from calibayes.recipes.compare.comparison_settings import Settings
from calibayes.recipes.compare.comparison_task import FASHION_MNIST
from calibayes.recipes.compare.comparison_text import QUICK_WARNING
from calibayes.recipes.compare.result_files import described_scores, described_trainings, diagrams, written_to
from calibayes.recipes.compare.run_and_print import begun
from calibayes.recipes.compare.score_columns import COLUMNS, ScoreColumn, Summary, listed, score_table, summary, weight
from calibayes.recipes.compare.split_table import SplitTable
from calibayes.recipes.compare.trainings import Trainings, run_trainings
from calibayes.sweeps.results_folder import write_json, write_whole
from calibayes.terminal import as_text, print_results, print_written

__all__ = ["demo_settings", "demo_text", "describe_demo", "run_and_print_demo"]

_MIXTURE = {"members": 4, "beta": 0.01}  # a fixed β, so that four members fit into two minutes
_FILES = {
    "reliability.png": "a reliability diagram of each method (seed 0)",
    "results.json": "every number, with settings and versions",
    "table.txt": "the text printed above",
}


def demo_settings(settings: Settings | None = None) -> Settings:
    """The settings, by default those for two minutes on two cores, with a mixture beside the schemes and no baselines."""
    settings = Settings() if settings is None else settings
    methods = (*settings.methods, "mixture")
    return replace(settings, methods=methods, method_settings={"mixture": _MIXTURE}, baselines=())


def run_and_print_demo(
    settings: Settings, folder: Path, *, console: Console, aside: Console, command: str, workers: int | None = None
) -> None:
    """Run the demo, print the results and write them to files; the arguments are those of `run_and_print`."""
    begin = time.monotonic()
    settings = demo_settings(settings)
    workers, progress = begun(FASHION_MNIST, settings, folder, aside, workers)
    trainings = run_trainings(FASHION_MNIST, settings, workers=workers, progress=progress)
    results = Group(_table(trainings), Text(demo_text(trainings)))
    print_results(console, results)
    named = [(str(seeds[0].run), seeds[0].probs, seeds[0].scores) for seeds in trainings.tested.values()]
    with written_to(folder):
        write_json(folder / "results.json", describe_demo(trainings, command))
        write_whole(folder / "table.txt", as_text(results).encode())
        write_whole(folder / "reliability.png", diagrams(named, trainings.data.test[1], columns=3))
    steps = [
        "Next:",
        f"  open {folder / 'reliability.png'}: bars below the dashed line mean overconfident",
        "  your own network: twelve lines in the README",
        "  your own table, texts or images: calibayes train data.csv --target label -o model",
        "  the command line: calibayes --help (after `. .venv/bin/activate`, if `make` set it up)",
    ]
    print_written(console, folder, _FILES, time.monotonic() - begin, steps)


def describe_demo(trainings: Trainings, command: str) -> dict[str, Any]:
    """All results of the demo, as numbers, lists and dicts."""
    schemes = {}
    for name, run in trainings.chosen.items():
        scores = ([each.scores for each in part[name]] for part in (trainings.trained, trainings.tested))
        schemes[name] = {"lam": run.lam, "beta": run.beta, **described_scores(*scores)}
    data = "Fashion-MNIST as it comes with calibayes, split by seed 0"
    return {**described_trainings(trainings, command), "data": data, "schemes": schemes}


def _table(trainings: Trainings) -> SplitTable:
    rows = [
        (method_named(name).title, [weight(run.lam), weight(run.beta)], [each.scores for each in trainings.tested[name]])
        for name, run in trainings.chosen.items()
    ]
    return score_table(trainings.settings, trainings.task.examples, ("method", "λ", "β"), rows)


def demo_text(trainings: Trainings) -> str:
    """Explain the table, and name the leading methods of each column."""
    settings = trainings.settings
    means = {name: summary([each.scores for each in seeds]) for name, seeds in trainings.tested.items()}
    lines = [
        f"Chosen by the lowest NLL on the validation images (seed 0): λ from {listed(settings.lams)} and "
        f"β from {listed(settings.betas)}.",
        f"mixture: {_MIXTURE['members']} networks with a Gaussian each, where every other method trains one network; each is "
        f"trained for as many epochs as the others, with a fixed β = {_MIXTURE['beta']:g}.",
        "ECE: the gap between confidence and accuracy; overconfidence: mean confidence minus accuracy.",
        "",
        *(_leader(column, means) for column in COLUMNS if column.best is not None),
        "",
    ]
    lines += [QUICK_WARNING] if settings.is_quick else []
    if settings.seeds > 1:
        lines.append("Apart: the two ranges mean ± standard deviation do not overlap. Within the spread: no evidence.")
    else:
        lines.append("One seed has no spread: none of these differences is evidence. More seeds: calibayes demo --seeds 3")
    lines.append("This is one network and one split of one small data set: other data may rank the methods differently.")
    return "\n".join(lines)


def _leader(column: ScoreColumn, means: dict[str, dict[str, Summary]]) -> str:
    ranked = sorted(means, key=lambda name: means[name][column.name].mean, reverse=column.best == "highest")[:2]
    first, second = (means[name][column.name] for name in ranked)
    values = (f"{method_named(name).title} ({column.show(means[name][column.name])})" for name in ranked)
    head = f"{column.best} {column.title.removesuffix(' %')}:"
    line = f"{head:<18}{', then '.join(values)}"
    if first.std is None or second.std is None:
        return line
    apart = abs(first.mean - second.mean) > first.std + second.std
    return f"{line}: {'apart' if apart else 'within the spread'}"
