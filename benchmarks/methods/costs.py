"""``python -m benchmarks.methods.costs TASK …``: what methods cost, measured one after the other on an idle machine.

A short training of each method, with all that it starts from, and a prediction, in multiples of those of the plain network.
What takes the same time however long a network is trained, a Laplace approximation or trees, is counted once. The chosen
settings are those of the records, so it is run after the comparison.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.methods.__main__ import RESULTS
from benchmarks.methods.scoring import predicted
from benchmarks.methods.task_data import data_of
from benchmarks.methods.tasks import TASKS, Task, task_named
from benchmarks.methods.trained_posteriors import Recipe, epochs_of, trained
from benchmarks.report import machine

__all__ = ["measured_costs"]

_EPOCHS = 2  # methods that start from a trained point add one
_FIXED = ("laplace", "ca-laplace")  # what comes after their trained point does not depend on its epochs
_REPEATS = 3
_EXAMPLES = 1000  # to predict


def measured_costs(task: Task, rows: list[dict[str, Any]], repeats: int = _REPEATS) -> dict[str, dict[str, dict[str, float]]]:
    """CPU seconds and multiples of the plain network, by base and method; the least of some repeats."""
    recipes = {
        (row["base"], row["method"]): Recipe(
            task=task.name,
            method=row["method"],
            base=row["base_settings"] and {**row["base_settings"], "epochs": _EPOCHS},
            tried=row["settings"],
        )
        for row in rows
        if row["seed"] == 0 and "error" not in row
    }
    seconds = {key: (float("inf"), float("inf")) for key in recipes}
    for _ in range(repeats):
        for key, recipe in recipes.items():
            seconds[key] = tuple(map(min, seconds[key], _measured(task, recipe)))  # type: ignore[assignment]
    plain = next(iter(seconds))
    first = seconds[plain]
    costs: dict[str, dict[str, dict[str, float]]] = {}
    for (base, method), (training, prediction) in seconds.items():
        fixed = 0.0
        if recipes[base, method].start == "learner":
            fixed = training
        elif method in _FIXED:
            start = "ca-fnn" if recipes[base, method].tried.get("lam") else "fnn"
            fixed = max(0.0, training - seconds[base, start][0])
        epochs, of_plain = (_epochs_of(task, rows, each) for each in (base, plain[0]))
        whole = (training - fixed) * epochs / _EPOCHS + fixed
        costs.setdefault(base, {})[method] = {
            "training": round(whole / (first[0] * of_plain / _EPOCHS), 3),
            "prediction": round(prediction / first[1], 3),
            "seconds_of_short_training": round(training, 3),
            "seconds_of_prediction": round(prediction, 4),
        }
    return costs


def _epochs_of(task: Task, rows: list[dict[str, Any]], base: str) -> int:
    """The epochs of a base."""
    settings = next(row["base_settings"] for row in rows if row["base"] == base and row["method"] == "fnn")
    return epochs_of(Recipe(task=task.name, method="fnn", base=settings), task, data_of(task.name, 0))


def _measured(task: Task, recipe: Recipe) -> tuple[float, float]:
    """CPU seconds of a training with all that it starts from, and of a prediction."""
    data = data_of(recipe.task, recipe.seed)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        posterior = trained(recipe, Path(folder))
        training = time.process_time() - begin
    x = data.splits.validation[0][:_EXAMPLES]
    predicted(posterior, task, x, recipe.seed)  # once to warm up
    begin = time.process_time()
    predicted(posterior, task, x, recipe.seed)
    return training, time.process_time() - begin


def main() -> None:
    """Measure the costs of some tasks, and write them beside their results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.methods.costs", description=__doc__)
    parser.add_argument("tasks", nargs="+", choices=list(TASKS), metavar="task", help=", ".join(TASKS))
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where results are")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in given.tasks:
        rows = json.loads((given.folder / name / "results.json").read_text(encoding="utf-8"))["rows"]
        about = {"command": f"python -m benchmarks.methods.costs {name}", "machine": machine()}
        text = json.dumps({**about, "costs": measured_costs(task_named(name), rows)}, indent=1) + "\n"
        (given.folder / name / "costs.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
