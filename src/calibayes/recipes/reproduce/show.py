"""An experiment from its first word to its last."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibayes.errors import InvalidArgumentError
from calibayes.recipes.reproduce.experiments import Experiment, Part
from calibayes.recipes.reproduce.figures import draw
from calibayes.recipes.reproduce.found import FoundPart, found_parts
from calibayes.recipes.reproduce.table import samples_table, scores_table, summary
from calibayes.sweeps import read, sweep
from calibayes.sweeps.folder import prepare, write_whole

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["VERSION", "only", "show"]

VERSION = 2  # raise it when a training with the same settings would come out otherwise
_WIDTH = 160


def only(experiment: Experiment, wanted: Mapping[str, Sequence[Any]]) -> Experiment:
    """The trainings of an experiment that have these settings; an error if there are none."""
    parts = []
    for part in experiment.parts:
        kept = tuple(
            each for each in part.settings if all(each.to_dict().get(name) in values for name, values in wanted.items())
        )
        if kept:
            parts.append(Part(part.name, kept))
    if not parts:
        told = ", ".join(f"{name}={','.join(map(str, values))}" for name, values in wanted.items())
        raise InvalidArgumentError(f"Expected some training of {experiment.name} to have {told}, but none has.")
    return replace(experiment, parts=tuple(parts))


def show(
    experiment: Experiment,
    folder: Path,
    *,
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
        console: where results are printed.
        aside: where progress is shown.
        run: whether to train; otherwise only what is there is drawn.
        workers: trainings at a time.
        backend: as of `calibayes.sweep`.
        address: as of `calibayes.sweep`.
    """
    prepare(folder / experiment.name)
    place = folder / experiment.data
    settings = experiment.settings()
    aside.print(f"{experiment.title}: {len(settings)} trainings, preset {experiment.preset}.", highlight=False)
    if run:
        trials = sweep(
            experiment.trial,
            settings,
            place,
            version=VERSION,
            label="{scheme}-seed{seed}",
            workers=workers,
            backend=backend,
            address=address,
            cost=_cost,
            progress=aside,
        )
    else:
        trials = read(place)
    parts = found_parts(experiment, trials)
    if not any(part.results for part in parts):
        raise InvalidArgumentError(f"Expected results of {experiment.name} in {str(place)!r}, but there are none.")
    _write(experiment, parts, folder / experiment.name, console, aside)
    for trial in trials.failed if run else []:
        assert trial.error is not None
        aside.print(f"Failed: {trial.path.name}: {trial.error.message}", markup=False, highlight=False, soft_wrap=True)
    return all(part.missing == 0 for part in parts)


def _write(experiment: Experiment, parts: list[FoundPart], folder: Path, console: Console, aside: Console) -> None:
    from rich.console import Console

    table = scores_table(f"{experiment.title} (test, mean ± standard deviation over seeds)", parts)
    missing = sum(part.missing for part in parts)
    note = f"{missing} trainings are missing." if missing else ""
    text = io.StringIO()
    samples = samples_table(parts)
    shown = [table, *([] if samples is None else [samples]), *([note] if note else [])]
    Console(file=text, width=_WIDTH, color_system=None, highlight=False).print(*shown, sep="\n")
    printed = "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())
    console.out(printed, end="", highlight=False)
    write_whole(folder / "table.txt", printed.encode())
    numbers = {"experiment": experiment.name, "preset": experiment.preset, "parts": summary(parts)}
    write_whole(folder / "summary.json", (json.dumps(numbers, indent=1, ensure_ascii=False) + "\n").encode())
    names = ["table.txt", "summary.json", *draw(experiment.name, parts, folder)]
    aside.print(f"Written to {folder}: {', '.join(names)}", markup=False, highlight=False, soft_wrap=True)


def _cost(settings: dict[str, Any]) -> float:
    """Roughly how long a training takes, in passes of the training examples forward through the network."""
    bayesian = settings["beta"] > 0
    looks = settings["epochs"] / settings["evaluate_every"] * (settings["epoch_samples"] if bayesian else 1)
    return float(3 * settings["epochs"] * settings["samples"] + 3 * settings["start_epochs"] + looks)
