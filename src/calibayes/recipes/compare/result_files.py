"""The files that a comparison writes: the numbers, the tables, the picture and the predictions."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from calibayes.displays import ReliabilityDisplay, reliability_grid
from calibayes.methods import METHODS
from calibayes.metrics import Scores, reliability_bins
from calibayes.metrics.score_table import as_json_numbers
from calibayes.recipes.compare.comparison import Comparison
from calibayes.recipes.compare.comparison_text import closing_words
from calibayes.recipes.compare.contenders import Contender, Entry
from calibayes.recipes.compare.jobs import OPTIMIZER, RECIPE, Probs
from calibayes.recipes.compare.recommendation import COMPARED, DRAWS, LEVEL, RANKING
from calibayes.recipes.compare.score_columns import summary
from calibayes.recipes.compare.trainings import RULE, Trainings
from calibayes.report import study, write_page
from calibayes.sweeps.results_folder import machine, prepare, unwritable, versions, write_json, write_whole

__all__ = ["FILES", "PREDICTIONS", "RUNS", "describe", "title_in", "write"]

RUNS = "runs"
PREDICTIONS = "predictions"
FILES = {
    "table.txt": "the text printed above",
    "reliability.png": "a reliability diagram of each (seed 0)",
    "report.html": "a page with every metric, diagram and difference (seed 0)",
    "results.json": "every number, with settings and versions",
    PREDICTIONS: "every contender's probabilities, for calibayes evaluate",
    RUNS: "every training, so that none is repeated when you add seeds",
}
_MOST_COLUMNS = 6


def write(comparison: Comparison, folder: Path, *, printed: str, command: str) -> None:
    """Write the files of `FILES` into the folder, each atomically, so that two processes do not interfere."""
    ordered = sorted(comparison.entries.values(), key=lambda entry: entry.contender.scaled)
    named = [(str(entry.contender), entry.test_probs[0], entry.test[0]) for entry in ordered]
    columns = len(comparison.settings.methods)
    with written_to(folder):
        (folder / "report.html").unlink(missing_ok=True)  # written last, so that it never belongs to other results
        _write_predictions(comparison, folder / PREDICTIONS)
        write_json(folder / "results.json", as_json_numbers(describe(comparison, command)))
        write_whole(folder / "table.txt", printed.encode())
        picture = diagrams(named, comparison.targets, columns=columns if columns <= _MOST_COLUMNS else 4)
        write_whole(folder / "reliability.png", picture)
        write_page(_study(comparison, command), folder / "report.html")


@contextmanager
def written_to(folder: Path) -> Iterator[None]:
    """Name the folder in the error if it cannot be written to."""
    try:
        yield
    except OSError as error:
        raise unwritable(folder, error) from error


def diagrams(named: Sequence[tuple[str, Probs, Scores]], targets: Tensor, *, columns: int) -> bytes:
    """A picture with a reliability diagram for each name."""
    displays = [
        ReliabilityDisplay(bins=reliability_bins(probs, targets), scores=scores, name=name) for name, probs, scores in named
    ]
    buffer = io.BytesIO()
    reliability_grid(displays, columns=columns).savefig(buffer, dpi=110, format="png")
    return buffer.getvalue()


def title_in(folder: Path) -> str | None:
    """The data set of the comparison whose results are in a folder, or ``None``."""
    try:
        return str(json.loads((folder / "results.json").read_text(encoding="utf-8"))["task"]["title"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _study(comparison: Comparison, command: str) -> dict[str, Any]:
    """Every metric of the contenders trained with the first seed, and every two of them compared."""
    seeds = comparison.settings.seeds
    origin = {"command": command, "files": [f"{comparison.task.name} (seed 0{f' of {seeds}' if seeds > 1 else ''})"]}
    return study(comparison.predictions(0), comparison.targets, class_names=comparison.class_names, origin=origin).to_dict()


def describe(comparison: Comparison, command: str) -> dict[str, Any]:
    """All results of a comparison, as numbers, lists and dicts."""
    trainings, verdict = comparison.trainings, comparison.verdict
    common = described_trainings(trainings, command)
    return {
        **common,
        "task": {
            "name": comparison.task.name,
            "title": comparison.task.title,
            "classes": list(comparison.class_names),
            **{part: len(getattr(trainings.data, part)[1]) for part in ("train", "validation", "test")},
        },
        "recipe": RECIPE,
        "ranking": RANKING,
        "contenders": [_contender(entry) for entry in comparison.entries.values()],
        "verdict": {
            "leader": None if verdict.leader is None else str(verdict.leader),
            "recommended": None if verdict.recommended is None else str(verdict.recommended),
            "clearly_worse": [str(each) for each in verdict.clearly_worse],
            "text": closing_words(verdict, comparison.differences, comparison.settings, comparison.task),
        },
        "intervals": {
            "level": LEVEL,
            "comparisons": comparison.differences.comparisons,
            "correction": "Bonferroni",
            "covers": ["test examples", *(["seeds"] if comparison.settings.seeds > 1 else [])],
            "draws": DRAWS,
        },
        "differences": [
            {
                **{"first": str(first), "second": str(second)},
                **{score: comparison.differences.between(first, second, score)._asdict() for score in COMPARED},
            }
            for second, first in combinations(comparison.entries, 2)
        ],
        "seconds": {**common["seconds"], "trainings_from_before": trainings.kept},
    }


def described_trainings(trainings: Trainings, command: str) -> dict[str, Any]:
    """The settings, candidates, versions, machine and time behind the results."""
    return {
        "command": command,
        "settings": trainings.settings.to_dict(),
        "optimizer": OPTIMIZER,
        "calibration_measure": "WMMCE()",
        "rule": RULE,
        "candidates": [{**asdict(run), "validation": scores.to_dict()} for run, scores in trainings.candidates],
        "versions": versions(),
        "machine": machine(workers=trainings.workers, threads_per_worker=1),
        "seconds": {"wall": round(trainings.wall_seconds, 1), "cpu": round(trainings.cpu_seconds, 1)},
    }


def described_scores(validation: Sequence[Scores], test: Sequence[Scores], **others: Sequence[Any]) -> dict[str, Any]:
    """Scores of a method: means over seeds, and those of each seed with its items of ``others``."""
    parts = {"validation": [each.to_dict() for each in validation], "test": [each.to_dict() for each in test]}
    columns: dict[str, Sequence[Any]] = {"seed": range(len(test)), **others, **parts}
    return {
        "test": {name: value._asdict() for name, value in summary(test).items()},
        "seeds": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    }


def _contender(entry: Entry) -> dict[str, Any]:
    files = [f"{PREDICTIONS}/{_file_name(entry.contender, seed)}" for seed in range(len(entry.test))]
    return {
        "name": str(entry.contender),
        "scheme": entry.contender.scheme,
        "temperature_scaled": entry.contender.scaled,
        "lam": entry.run.lam,
        "beta": entry.run.beta,
        **described_scores(entry.validation, entry.test, temperature=entry.temperatures, predictions=files),
    }


def _write_predictions(comparison: Comparison, folder: Path) -> None:
    """Write the probabilities of every contender and seed, and remove those of other settings."""
    prepare(folder)
    names = np.array(comparison.class_names)
    written = set()
    validation, test = comparison.trainings.data.validation[1], comparison.targets
    for entry in comparison.entries.values():
        for seed in range(comparison.settings.seeds):
            for probs, targets, part in (entry.test_probs, test, ""), (entry.validation_probs, validation, "-validation"):
                buffer = io.BytesIO()
                np.savez_compressed(buffer, probs=probs[seed], targets=targets.numpy(), class_names=names)
                path = folder / _file_name(entry.contender, seed, part)
                write_whole(path, buffer.getvalue())
                written.add(path.name)
    ours = re.compile(rf"({'|'.join(map(re.escape, METHODS))})(-t)?-seed\d+(-validation)?\.npz")
    for path in folder.iterdir():
        if ours.fullmatch(path.name) and path.name not in written:
            path.unlink(missing_ok=True)


def _file_name(contender: Contender, seed: int, part: str = "") -> str:
    return f"{contender.slug}-seed{seed}{part}.npz"
