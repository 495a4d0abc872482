"""Train what is missing of an experiment, then print, draw and write down its results; likewise the claims."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibayes.errors import InvalidArgumentError
from calibayes.sweeps import Trial, read, sweep
from calibayes.sweeps.identity import function_and_name
from calibayes.sweeps.results_folder import prepare, write_whole
from reproduction.experiment_results import PartResults, part_results
from reproduction.experiments import Experiment, experiment
from reproduction.figures import draw
from reproduction.paper_claims import PaperClaim, claims
from reproduction.printed_tables import claims_text, summary, table_text

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["VERSION", "print_claims", "recorded", "recorded_claims", "run_experiment"]

VERSION = 2  # raise it when a training with the same settings would come out otherwise


def run_experiment(
    asked: Experiment,
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
    """Train what is missing (unless not told to ``run``), draw, print and write down; returns True if no training failed.

    The records of trainings are in a folder for each data set, so that experiments share those that they have in common.
    ``wanted`` limits the trainings, as in `Experiment.only`; figures and tables always show all that there are.
    """
    prepare(folder / asked.name)
    _check_preset(asked, folder)
    failed: list[Trial] = []
    if run:
        settings = (asked.only(wanted) if wanted else asked).settings()
        aside.print(f"{asked.title}: {len(settings)} trainings, preset {asked.preset}.", highlight=False)
        failed = sweep(
            asked.trial,
            settings,
            folder / asked.data,
            version=VERSION,
            label="{scheme}-seed{seed}",
            workers=workers,
            backend=backend,
            address=address,
            check=asked.check if backend == "local" else None,
            cost=_cost,
            progress=aside,
        ).failed
    parts = recorded(asked, folder, aside)
    if not any(part.results for part in parts):
        because = f" The first failure: {failed[0].error.message}" if failed and failed[0].error else ""
        place = str(folder / asked.data)
        raise InvalidArgumentError(f"Expected results of {asked.name} in {place!r}, but there are none.{because}")
    _write(asked, parts, folder / asked.name, console, aside)
    for trial in failed:
        assert trial.error is not None
        _say(aside, f"Failed: {trial.path.name}: {trial.error.message}")
    return not failed


def recorded(asked: Experiment, folder: Path, aside: Console | None = None) -> list[PartResults]:
    """The results of an experiment in a folder; records that cannot be read are named on ``aside``."""
    known = read(folder / asked.data)
    if aside is not None:
        for path in known.damaged:
            _say(aside, f"Cannot be read, and is left out: {path}")
    _, name = function_and_name(asked.trial)
    return part_results(asked, [each for each in known if (each.record.trial, each.record.version) == (name, VERSION)])


def _check_preset(asked: Experiment, folder: Path) -> None:
    """Raise if the folder has figures of another size, which would be replaced."""
    path = folder / asked.name / "summary.json"
    try:
        before = json.loads(path.read_text(encoding="utf-8"))["preset"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if before != asked.preset:
        raise InvalidArgumentError(
            f"{str(path.parent)!r} holds results of preset {before}. For preset {asked.preset}, choose another --out."
        )


def _write(asked: Experiment, parts: list[PartResults], folder: Path, console: Console, aside: Console) -> None:
    printed = table_text(asked, parts)
    write_whole(folder / "table.txt", printed.encode())
    _write_json(folder / "summary.json", {"experiment": asked.name, "preset": asked.preset, "parts": summary(parts)})
    commands = "".join(f"{part.name}\n    {asked.command(part.part)}\n" for part in parts)
    write_whole(folder / "commands.txt", commands.encode())
    names = ["table.txt", "summary.json", "commands.txt", *draw(asked.name, parts, folder)]
    console.out(printed, end="", highlight=False)  # last: whoever reads it may stop listening
    _say(aside, f"Written to {folder}: {', '.join(names)}")


def print_claims(folder: Path, preset: str, *, console: Console) -> None:
    """Print every claim with our numbers and the verdict, from the records of experiments of a size, and write them down."""
    found = recorded_claims(folder, preset)
    if not found:
        raise InvalidArgumentError(
            f"Expected results of experiments in {str(folder)!r}, but there are none of preset {preset}."
        )
    printed = claims_text(found)
    write_whole(folder / "claims.txt", printed.encode())
    _write_json(folder / "claims.json", {"preset": preset, "claims": [claim.to_dict() for claim in found]})
    console.out(printed, end="", highlight=False)  # last: whoever reads it may stop listening


def recorded_claims(folder: Path, preset: str) -> list[PaperClaim]:
    """The claims, judged by the records in a folder."""
    parts: dict[str, list[PartResults]] = {"newsgroups": [], "cifar10": []}
    for name in ("newsgroups-epochs", "newsgroups-lambda", "newsgroups-variations", "cifar10-reliability"):
        asked = experiment(name, preset)
        parts[asked.data] += recorded(asked, folder) if (folder / asked.data).is_dir() else []
    return claims(parts["newsgroups"], parts["cifar10"])


def _write_json(path: Path, numbers: dict[str, Any]) -> None:
    write_whole(path, (json.dumps(numbers, indent=1, ensure_ascii=False) + "\n").encode())


def _say(aside: Console, line: str) -> None:
    aside.print(line, markup=False, highlight=False, soft_wrap=True)


def _cost(settings: dict[str, Any]) -> float:
    """Roughly how long a training takes, in passes of the training examples forward through the network."""
    bayesian = settings["beta"] > 0
    scored = settings["epochs"] / settings["evaluate_every"] * (settings["epoch_samples"] if bayesian else 1)
    return float(3 * settings["epochs"] * settings["samples"] + 3 * settings["start_epochs"] + scored)
