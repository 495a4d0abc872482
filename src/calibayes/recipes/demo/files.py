"""What the demo leaves behind: the numbers, the table and the picture."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

import calibayes
from calibayes.displays import reliability_grid
from calibayes.errors import InvalidArgumentError
from calibayes.objective import SCHEMES
from calibayes.recipes.demo.run import RULE, Results
from calibayes.recipes.demo.settings import Run
from calibayes.recipes.demo.words import summary

__all__ = ["FILES", "describe", "prepare", "write"]

FILES = {
    "reliability.png": "four reliability diagrams (seed 0)",
    "results.json": "every number, and how it came about",
    "table.txt": "what is printed above",
}


def prepare(folder: Path) -> None:
    """Make the folder, or say why nothing can be written there before two minutes are spent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".calibayes-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise _unwritable(folder, error) from error


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
        reliability_grid(results.displays).savefig(folder / "reliability.png", dpi=110)
    except OSError as error:
        raise _unwritable(folder, error) from error


def describe(results: Results, command: str) -> dict[str, Any]:
    """Everything that the demo found, as numbers, lists and dicts."""
    spent = os.times()
    return {
        "command": command,
        "settings": asdict(results.settings),
        "data": "Fashion-MNIST as it comes with calibayes, split by seed 0",
        "optimizer": "Adam, learning rate to zero along a cosine",
        "calibration_measure": "WMMCE()",
        "rule": RULE,
        "candidates": [{**asdict(run), "validation": scores.to_dict()} for run, scores in results.candidates],
        "schemes": {scheme: _scheme(results, scheme) for scheme in SCHEMES},
        "versions": {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "calibayes": calibayes.__version__,
        },
        "machine": {
            "platform": platform.platform(),
            "cpu": _cpu(),
            "workers": results.workers,
            "threads_per_worker": 1,
        },
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


def _cpu() -> str:
    """The name of the processor, which `platform` does not know on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _unwritable(folder: Path, error: OSError) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Cannot write to {str(folder)!r}: {error.strerror or error}. Choose another folder with --out."
    )
