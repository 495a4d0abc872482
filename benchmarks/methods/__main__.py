"""``python -m benchmarks.methods TASK``: run, or go on with, the comparison on one task and write its results."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks.methods.picture import draw
from benchmarks.methods.study import Study
from benchmarks.methods.table import table
from benchmarks.methods.tasks import TASKS, task_named
from calibayes import __version__


def main() -> None:
    """Run the study of one task."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.methods", description=__doc__)
    parser.add_argument("task", choices=list(TASKS))
    parser.add_argument("--folder", type=Path, default=Path("results/methods"), help="where results go")
    parser.add_argument("--workers", type=int, default=2, help="trials at a time")
    given = parser.parse_args()
    task = task_named(given.task)
    place = given.folder / task.name
    place.mkdir(parents=True, exist_ok=True)
    rows = Study(task, place / "runs", given.workers).run()
    about = {
        "command": "python -m benchmarks.methods " + task.name,
        "task": task.title,
        "seeds": list(range(task.seeds)),
        "versions": {"calibayes": __version__, "torch": torch.__version__, "python": platform.python_version()},
        "machine": {"processor": _processor(), "cores": 2, "threads_per_training": 1},
    }
    (place / "results.json").write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    text = table(rows, task.title)
    (place / "table.txt").write_text(text)
    draw(rows, task.title, place / "cost.png")
    sys.stdout.write(text)


def _processor() -> str:
    found = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout
    return next((line.split(":", 1)[1].strip() for line in found.splitlines() if line.startswith("Model name")), "unknown")


if __name__ == "__main__":
    main()
