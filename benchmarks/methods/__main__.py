"""``python -m benchmarks.methods TASK …``: run, or go on with, the comparison on tasks and write their results."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.methods.study import Study
from benchmarks.methods.tasks import TASKS, task_named
from benchmarks.report import machine

RESULTS = Path(__file__).parents[2] / "results" / "methods"


def main() -> None:
    """Run the study of some tasks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.methods", description=__doc__)
    parser.add_argument("tasks", nargs="+", choices=list(TASKS), metavar="task", help=", ".join(TASKS))
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where results go")
    parser.add_argument("--workers", type=int, default=2, help="trainings at a time")
    given = parser.parse_args()
    for name in given.tasks:
        task = task_named(name)
        rows = Study(task, given.folder, given.workers).run()
        about = {
            "command": f"python -m benchmarks.methods {name}",
            "task": task.title,
            "seeds": list(range(task.seeds)),
            "machine": machine(),
        }
        text = json.dumps({**about, "rows": rows}, indent=1) + "\n"
        (given.folder / name / "results.json").write_text(text, encoding="utf-8")
        print(f"{name}: {len(rows)} rows, {sum('error' in row for row in rows)} of them errors.")


if __name__ == "__main__":
    main()
