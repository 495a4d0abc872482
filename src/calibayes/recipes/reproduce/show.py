"""An experiment from its first word to its last."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibayes.errors import InvalidArgumentError
from calibayes.recipes.reproduce.experiments import Experiment
from calibayes.recipes.reproduce.figures import draw
from calibayes.recipes.reproduce.found import FoundPart, found_parts
from calibayes.recipes.reproduce.repeat import command, only
from calibayes.recipes.reproduce.table import samples_table, scores_table, summary
from calibayes.sweeps import Trial, read, sweep
from calibayes.sweeps.identity import function_and_name
from calibayes.sweeps.results_folder import prepare, write_whole
from calibayes.terminal import as_text

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["VERSION", "recorded", "show", "table_text"]

VERSION = 2  # raise it when a training with the same settings would come out otherwise
_WIDTH = 200


def show(
    experiment: Experiment,
    folder: Path,
    *,
    wanted: Mapping[str, Sequence[Any]] | None = None,
    console: Console,
    aside: Console,
    run: bool = True,
    workers: int | None = None,
    backend: str = "local",
    address: str | None = None,
) -> bool:
    """Train what is missing, draw, print and write down; whether every training has a result is told.

    Args:
        experiment: what to train.
        folder: where everything goes; started again with it, only what is missing is trained. The records of trainings
            lie in a folder for each data set, so that experiments share those that they have in common.
        wanted: settings of the trainings to run, as of `only`; figures and tables are always those of all that there are.
        console: where results are printed.
        aside: where progress is shown.
        run: whether to train; otherwise only what is there is drawn.
        workers: trainings at a time.
        backend: as of `calibayes.sweep`.
        address: as of `calibayes.sweep`.
    """
    prepare(folder / experiment.name)
    place = folder / experiment.data
    _check_preset(experiment, folder)
    asked = only(experiment, wanted) if wanted else experiment
    failed: list[Trial] = []
    if run:
        settings = asked.settings()
        aside.print(f"{experiment.title}: {len(settings)} trainings, preset {experiment.preset}.", highlight=False)
        failed = sweep(
            experiment.trial,
            settings,
            place,
            version=VERSION,
            label="{scheme}-seed{seed}",
            workers=workers,
            backend=backend,
            address=address,
            check=experiment.check if backend == "local" else None,
            cost=_cost,
            progress=aside,
        ).failed
    parts = recorded(experiment, folder, aside)
    if not any(part.results for part in parts):
        because = f" The first failure: {failed[0].error.message}" if failed and failed[0].error else ""
        raise InvalidArgumentError(f"Expected results of {experiment.name} in {str(place)!r}, but there are none.{because}")
    _write(experiment, parts, folder / experiment.name, console, aside)
    for trial in failed:
        assert trial.error is not None
        aside.print(f"Failed: {trial.path.name}: {trial.error.message}", markup=False, highlight=False, soft_wrap=True)
    return not failed


def recorded(experiment: Experiment, folder: Path, aside: Console | None = None) -> list[FoundPart]:
    """The results of an experiment that lie in a folder; records that cannot be read are named on ``aside``."""
    known = read(folder / experiment.data)
    if aside is not None:
        for path in known.damaged:
            aside.print(f"Cannot be read, and is left out: {path}", markup=False, highlight=False, soft_wrap=True)
    _, name = function_and_name(experiment.trial)
    ours = [trial for trial in known if (trial.record.trial, trial.record.version) == (name, VERSION)]
    return found_parts(experiment, ours)


def _check_preset(experiment: Experiment, folder: Path) -> None:
    """Raise if the folder has figures of another size, which would be replaced."""
    path = folder / experiment.name / "summary.json"
    try:
        before = json.loads(path.read_text(encoding="utf-8"))["preset"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if before != experiment.preset:
        raise InvalidArgumentError(
            f"{str(path.parent)!r} holds results of preset {before}. For preset {experiment.preset}, choose another --out."
        )


def _write(experiment: Experiment, parts: list[FoundPart], folder: Path, console: Console, aside: Console) -> None:
    printed = table_text(experiment, parts)
    write_whole(folder / "table.txt", printed.encode())
    numbers = {"experiment": experiment.name, "preset": experiment.preset, "parts": summary(parts)}
    write_whole(folder / "summary.json", (json.dumps(numbers, indent=1, ensure_ascii=False) + "\n").encode())
    commands = "".join(f"{part.name}\n    {command(experiment, part.part)}\n" for part in parts)
    write_whole(folder / "commands.txt", commands.encode())
    names = ["table.txt", "summary.json", "commands.txt", *draw(experiment.name, parts, folder)]
    console.out(printed, end="", highlight=False)  # last: whoever reads it may stop listening
    aside.print(f"Written to {folder}: {', '.join(names)}", markup=False, highlight=False, soft_wrap=True)


def table_text(experiment: Experiment, parts: list[FoundPart]) -> str:
    """The tables of an experiment as they are printed."""
    from rich.console import Group

    title = f"{experiment.title} (preset {experiment.preset}; test, mean ± standard deviation over seeds)"
    samples = samples_table(parts)
    missing = sum(part.missing for part in parts)
    shown = [scores_table(title, parts), *([] if samples is None else [samples])]
    note = "1 training is missing." if missing == 1 else f"{missing} trainings are missing."
    return as_text(Group(*shown, *([note] if missing else [])), _WIDTH)


def _cost(settings: dict[str, Any]) -> float:
    """Roughly how long a training takes, in passes of the training examples forward through the network."""
    bayesian = settings["beta"] > 0
    looks = settings["epochs"] / settings["evaluate_every"] * (settings["epoch_samples"] if bayesian else 1)
    return float(3 * settings["epochs"] * settings["samples"] + 3 * settings["start_epochs"] + looks)
