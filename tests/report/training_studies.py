"""Trainings with simulated predictions: two classes, five, twenty-four, very many, and names that try to break the page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from tests.report.studies import HOSTILE, predictions

from calibayes.crossfit.permutation_importance import ColumnImportance
from calibayes.report import TrainingStudy


@dataclass(frozen=True)
class Tried:
    title: str
    result: str
    nll: float
    standard_error: float
    seconds: float
    reason: str = ""


ATTEMPTS = (
    Tried("logistic regression", "complete", 0.4012, 0.0101, 2.34),
    Tried("boosted trees", "complete", 0.3521, 0.0093, 75.0),
    Tried("networks", "too slow", 0.3712, 0.0212, 41.0, "would not have been done in time"),
    Tried("something", "failed", float("nan"), float("nan"), 0.1, "out of memory"),
)


def importances(count: int) -> list[ColumnImportance]:
    """The increase falls from column to column; the last ones may be nothing, or less."""
    values = 0.2 * np.exp(-np.arange(count) / 3) - 0.001
    return [ColumnImportance(f"column {place}", x, x - 0.01, x + 0.01) for place, x in enumerate(values.tolist())]


def simulated(classes: int, n: int = 1500, names: list[str] | None = None) -> TrainingStudy:
    probs, targets = predictions(n, classes, 1.0, 1.5, 1)
    return TrainingStudy(
        probs=probs,
        targets=targets,
        class_names=names or [f"class {place}" for place in range(classes)],
        file="data.csv",
        rows=n,
        columns=14,
        target="label",
        method="boosted trees",
        scored_on="held-out folds",
        folds=5,
        command="calibayes train data.csv --target label --report report.html",
        attempts=ATTEMPTS,
        importance=importances(14),
        notes=("Column 'id' counts the rows: not used.",),
        replicates=60,
    )


@cache
def two() -> TrainingStudy:
    return simulated(2)


@cache
def five() -> TrainingStudy:
    return simulated(5)


@cache
def many() -> TrainingStudy:
    return replace(simulated(24), columns=300, importance=importances(40))


@cache
def huge() -> TrainingStudy:
    return simulated(120, n=2500)


@cache
def hostile() -> TrainingStudy:
    return replace(
        simulated(10, n=600, names=list(HOSTILE)),
        file=HOSTILE[0],
        target=HOSTILE[2],
        method=HOSTILE[1],
        attempts=[
            Tried(name, "failed" if place % 2 else "complete", 1.0, 0.1, 3.0, name) for place, name in enumerate(HOSTILE)
        ],
        importance=[each._replace(name=name) for each, name in zip(importances(10), HOSTILE, strict=True)],
        columns=10,
        importance_note=HOSTILE[3],
        warnings=HOSTILE,
        notes=HOSTILE,
        command=f"calibayes train '{HOSTILE[4]}' {'y' * 300}",
    )


@cache
def single_split() -> TrainingStudy:
    """One method, a test part, no importance, and a class that never occurs."""
    probs, targets = predictions(200, 4, 1.0, 1.5, 1)
    targets[targets == 2] = 3
    probs[:, 2] = 1e-9
    return TrainingStudy(
        probs=probs / probs.sum(1, keepdims=True),
        targets=targets,
        class_names=["a", "b", "c", "d"],
        file="data.csv",
        rows=1000,
        columns=3,
        target="label",
        method="plain network",
        scored_on="test part",
        importance_note="Texts have no columns to shuffle.",
        replicates=60,
    )


ALL = (two, five, many, huge, hostile, single_split)
