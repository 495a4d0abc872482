"""The records of all tasks as one table: a line for each task, base, method, way of scaling and seed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.methods.contenders import CONTENDERS
from benchmarks.methods.scoring import WAYS
from benchmarks.methods.study import stored_results
from benchmarks.methods.tasks import TASKS
from benchmarks.methods.test_chance import unpacked

__all__ = ["CHANCE", "REFERENCE", "comparison_frame", "failures", "label", "recorded_rows", "reference_of"]

REFERENCE = ("plain", "fnn", "temperature")
"""What everything is compared with: the plain network with a temperature."""

_REFERENCE_OF_ONE_BASE = ("regularised", "fnn", "temperature")

CHANCE = "chance: "
"""Columns of this beginning hold what draws of the test examples add to a score."""

_MARKS = {"plain": "", "temperature": " + T", "best": " + scaling"}


def recorded_rows(results: Path) -> list[dict[str, Any]]:
    """The rows of every task with results, in the order of the tasks."""
    rows: list[dict[str, Any]] = []
    for task in TASKS.values():
        stored, path = stored_results(results, task), results / task.name / "costs.json"
        costs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for row in [] if stored is None else stored["rows"]:
            # Without a measurement: epochs of training, in those of the plain network.
            measured = costs.get("costs", {}).get(row["base"], {}).get(row["method"], {})
            cost = {"cost": measured.get("training", row.get("trainings")), "prediction": measured.get("prediction")}
            rows.append({**row, **cost})
    return rows


def comparison_frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """One line for each task, base, method, way and seed, with scores as columns; failed trainings are left out."""
    frame = pd.DataFrame([line for row in rows if "error" not in row for line in _lines(row)])
    others = ("task", "base", "method", "way", "seed")
    numbers = [name for name in frame if name not in others and not str(name).startswith(CHANCE)]
    return frame.astype(dict.fromkeys(numbers, float)) if len(frame) else frame  # files spell infinity as a text


def _lines(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    about = {name: row[name] for name in ("task", "base", "method", "seed", "cost", "prediction", "passes")}
    for way in WAYS:
        line = {**about, "way": way, **row["test"][way], "validation_nll": row["cross_validated_nll"].get(way)}
        line |= {
            f"{score}_shift{severity}": value
            for severity, by_way in row["shift"].items()
            for score, value in by_way[way].items()
        }
        line |= {f"auroc_{score}": value for by_score in row["outsiders"].values() for score, value in by_score.items()}
        people = row.get("people", {}).get(way, {})
        line |= {CHANCE + score: unpacked(text) for score, text in row.get("chance", {}).get(way, {}).items()}
        line |= {f"people_{name}": people[name] for name in ("kl", "brier") if name in people}
        yield line


def failures(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Task, base, method and error of every training that failed."""
    names = ("task", "base", "method", "seed", "error")
    return [{name: row[name] for name in names} for row in rows if "error" in row]


def reference_of(part: pd.DataFrame) -> tuple[str, str, str]:
    """What the methods of a data set are compared with: where all are regularised, the network of that base."""
    return REFERENCE if (part["base"] == REFERENCE[0]).any() else _REFERENCE_OF_ONE_BASE


def label(base: str, method: str, way: str = "plain") -> str:
    """What tables and pictures call a method on a base, as it is or scaled."""
    title = next(each.title for each in CONTENDERS if each.name == method)
    return f"{title}{_MARKS[way]}{', regularised' if base == 'regularised' else ''}"
