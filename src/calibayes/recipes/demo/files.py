"""What the demo leaves behind: the numbers, the table and the picture."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from calibayes.displays import reliability_grid
from calibayes.recipes.compare.columns import summary
from calibayes.recipes.compare.jobs import OPTIMIZER
from calibayes.recipes.compare.settings import Run
from calibayes.recipes.compare.trainings import RULE
from calibayes.recipes.demo.run import Results
from calibayes.sweeps.results_folder import machine, unwritable, versions

__all__ = ["FILES", "describe", "write"]

FILES = {
    "reliability.png": "a reliability diagram of each method (seed 0)",
    "results.json": "every number, and how it came about",
    "table.txt": "what is printed above",
}


def write(results: Results, folder: Path, *, printed: str, command: str) -> None:
    """Write the files of `FILES` into the folder.

    Args:
        results: what the demo found.
        folder: where to.
        printed: the text of ``table.txt``.
        command: what the user typed, for the record.
    """
    try:
        numbers = json.dumps(describe(results, command), indent=2, ensure_ascii=False)
        (folder / "results.json").write_text(numbers + "\n", encoding="utf-8")
        (folder / "table.txt").write_text(printed, encoding="utf-8")
        reliability_grid(results.displays, columns=3).savefig(folder / "reliability.png", dpi=110)
    except OSError as error:
        raise unwritable(folder, error) from error


def describe(results: Results, command: str) -> dict[str, Any]:
    """Everything that the demo found, as numbers, lists and dicts."""
    spent = os.times()
    return {
        "command": command,
        "settings": results.settings.to_dict(),
        "data": "Fashion-MNIST as it comes with calibayes, split by seed 0",
        "optimizer": OPTIMIZER,
        "calibration_measure": "WMMCE()",
        "rule": RULE,
        "candidates": [{**asdict(run), "validation": scores.to_dict()} for run, scores in results.candidates],
        "schemes": {scheme: _scheme(results, scheme) for scheme in results.chosen},
        "versions": versions(),
        "machine": machine(workers=results.workers, threads_per_worker=1),
        "seconds": {
            "wall": round(results.wall_seconds, 1),
            "cpu": round(spent.user + spent.system + spent.children_user + spent.children_system, 1),
        },
    }


def _scheme(results: Results, scheme: str) -> dict[str, Any]:
    run: Run = results.chosen[scheme]
    pairs = zip(results.validation[scheme], results.test[scheme], strict=True)
    return {
        "lam": run.lam,
        "beta": run.beta,
        "test": {name: value._asdict() for name, value in summary(results.test[scheme]).items()},
        "seeds": [
            {"seed": seed, "validation": validation.to_dict(), "test": test.to_dict()}
            for seed, (validation, test) in enumerate(pairs)
        ],
    }
