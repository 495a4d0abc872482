"""Run the missing trainings of an experiment; print, draw and write its results; and the same for the claims."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibayes.errors import InvalidArgumentError
from calibayes.methods import method_named
from calibayes.sweeps import Trial, read, sweep
from calibayes.sweeps.results_folder import prepare, write_json, write_whole
from calibayes.sweeps.trial_identity import function_and_name
from calibayes.terminal import print_line
from reproduction.claim_verdicts import PaperClaim
from reproduction.experiment import Experiment
from reproduction.experiment_results import PartResults, part_results
from reproduction.experiments import experiment, outputs_of
from reproduction.followup_claims import followup_claims
from reproduction.membership_claims import membership_claims
from reproduction.membership_results import leak_summary
from reproduction.paper_claims import claims
from reproduction.printed_tables import claims_text

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "VERSION",
    "print_claims",
    "print_followup_claims",
    "recorded",
    "recorded_claims",
    "recorded_followup_claims",
    "run_experiment",
]

VERSION = 2  # raise it when the same settings would give another result
_FOLLOWUPS = {"cifar10-followup": "CIFAR-10", "clinc150-followup": "CLINC150"}  # and the names of their data in claims


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
    """Run missing trainings (with ``run``); draw, print and write the results; return True if no training failed.

    The records of trainings are in a folder for each data set, so that experiments share common ones. ``wanted`` limits the
    trainings, as in `Experiment.only`; figures and tables always show all results.
    """
    prepare(folder / asked.name)
    _check_preset(asked, folder)
    failed: list[Trial] = []
    if run:
        settings = (asked.only(wanted) if wanted else asked).settings()
        print_line(aside, f"{asked.title}: {len(settings)} trainings, preset {asked.preset}.")
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
        print_line(aside, f"Failed: {trial.path.name}: {trial.error.message if trial.error else ''}")
    return not failed


def recorded(asked: Experiment, folder: Path, aside: Console | None = None) -> list[PartResults]:
    """The results of an experiment in a folder; unreadable records are named on ``aside``."""
    known = read(folder / asked.data, function_and_name(asked.trial)[1])
    for path in known.damaged:
        if aside is not None:
            print_line(aside, f"Left out, since it cannot be read: {path}")
    return part_results(asked, [each for each in known if each.record.version == VERSION])


def _check_preset(asked: Experiment, folder: Path) -> None:
    """Raise if the folder has figures of another preset, which would be replaced."""
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
    outputs = outputs_of(asked)
    printed = outputs.table_text(asked, parts)
    write_whole(folder / "table.txt", printed.encode())
    numbers: dict[str, Any] = {"experiment": asked.name, "preset": asked.preset, "parts": outputs.summary(parts)}
    if asked.data == "membership":
        numbers["leaks"] = leak_summary(parts)
    write_json(folder / "summary.json", numbers, indent=1)
    commands = "".join(f"{part.name}\n    {asked.command(part.part)}\n" for part in parts)
    write_whole(folder / "commands.txt", commands.encode())
    names = ["table.txt", "summary.json", "commands.txt", *outputs.draw(asked.name, parts, folder)]
    print_line(console, printed.rstrip("\n"))  # last, since the reader of a pipe may close it
    print_line(aside, f"Written to {folder}: {', '.join(names)}")


def print_claims(folder: Path, preset: str, *, console: Console) -> None:
    """Print every claim of the paper with our numbers and the verdict, from a preset's records, and write them to files."""
    judged = recorded_claims(folder, preset)
    _write_claims(folder, preset, "claims", judged, claims_text(judged), console)


def print_followup_claims(folder: Path, preset: str, *, console: Console) -> None:
    """The same for the follow-up."""
    judged = recorded_followup_claims(folder, preset)
    _write_claims(folder, preset, "followup-claims", judged, claims_text(judged, followup=True), console)


def _write_claims(folder: Path, preset: str, name: str, judged: Sequence[PaperClaim], printed: str, console: Console) -> None:
    if not judged:
        raise InvalidArgumentError(
            f"Expected results of experiments in {str(folder)!r}, but there are none of preset {preset}."
        )
    write_whole(folder / f"{name}.txt", printed.encode())
    write_json(folder / f"{name}.json", {"preset": preset, "claims": [claim.to_dict() for claim in judged]}, indent=1)
    print_line(console, printed.rstrip("\n"))  # last, since the reader of a pipe may close it


def recorded_claims(folder: Path, preset: str) -> list[PaperClaim]:
    """The claims, judged by the records in a folder."""
    parts: dict[str, list[PartResults]] = {"newsgroups": [], "cifar10": []}
    for name in ("newsgroups-epochs", "newsgroups-lambda", "newsgroups-variations", "cifar10-reliability"):
        asked = experiment(name, preset)
        parts[asked.data] += recorded(asked, folder) if (folder / asked.data).is_dir() else []
    judged = claims(parts["newsgroups"], parts["cifar10"])
    for name, title in (("membership-newsgroups", "20 Newsgroups"), ("membership-fashion", "Fashion-MNIST")):
        asked = experiment(name, preset)
        judged += membership_claims(title, recorded(asked, folder)) if (folder / asked.data).is_dir() else []
    return judged


def recorded_followup_claims(folder: Path, preset: str) -> list[PaperClaim]:
    """The follow-up's claims, judged by the records in a folder."""
    asked = {title: experiment(name, preset) for name, title in _FOLLOWUPS.items()}
    return followup_claims({title: recorded(each, folder) for title, each in asked.items() if (folder / each.data).is_dir()})


def _cost(settings: dict[str, Any]) -> float:
    """The rough duration of a training, in forward passes over the training examples."""
    networks = method_named(settings["scheme"]).default("members") or 1
    bayesian = settings["beta"] > 0
    scored = settings["epochs"] / settings["evaluate_every"] * (settings["epoch_samples"] if bayesian else 1)
    outside = 2 if settings.get("ocm") else 1
    trained = 3 * settings["epochs"] * settings["samples"] * outside + 3 * settings["start_epochs"]
    return float((trained + scored) * settings.get("members", networks))
