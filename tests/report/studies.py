"""Studies of simulated predictions: two models, names that try to break the page, odd numbers, and very many classes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibayes.report import study

# Names of models and classes that a user's file may have.
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</script><script>alert(3)</script>",
    "' onmouseover='alert(4)",
    "{{ 7 * 7 }}{% raw %}",
    "שלום \u202e evil",
    "x" * 400,
    "&lt;b&gt; \u2028 line; and; more",
    "</style></title><svg onload=alert(5)>",
    "日本語のクラス",
)


def predictions(
    n: int, classes: int, sharpness: float, skill: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Probabilities that are calibrated if ``sharpness`` is 1, and overconfident above; targets depend on n alone."""
    targets = np.random.default_rng(0).integers(classes, size=n)
    logits = np.random.default_rng(seed).normal(size=(n, classes)) + skill * np.eye(classes)[targets]
    likelihood = np.exp(sharpness * skill * (logits - logits.max(1, keepdims=True)))
    return likelihood / likelihood.sum(1, keepdims=True), targets


def simulated(
    models: dict[str, float], n: int, classes: int, replicates: int, names: list[str] | None = None
) -> dict[str, Any]:
    """The study of models that differ in how sharp their probabilities are."""
    drawn = {name: predictions(n, classes, sharpness, 2.0, seed) for seed, (name, sharpness) in enumerate(models.items(), 1)}
    origin = {"command": "calibayes evaluate predictions.csv --label label --html report.html", "files": ["predictions.csv"]}
    probs, targets = {name: table for name, (table, _) in drawn.items()}, next(iter(drawn.values()))[1]
    names = names or [f"class {index}" for index in range(classes)]
    return study(probs, targets, class_names=names, replicates=replicates, origin=origin).to_dict()


def _fresh(make: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Compute once, and give every test its own copy to change."""
    kept = cache(make)

    def fresh() -> dict[str, Any]:
        return copy.deepcopy(kept())

    fresh.__name__ = make.__name__
    return fresh


@_fresh
def two() -> dict[str, Any]:
    return simulated({"plain": 1.4, "calibration-aware": 0.95}, n=3000, classes=10, replicates=200)


@_fresh
def hostile() -> dict[str, Any]:
    sharpness = {name: 0.6 + 0.3 * index for index, name in enumerate(HOSTILE[:3] + HOSTILE[5:8])}
    content = simulated(sharpness, n=600, classes=10, replicates=60, names=list(HOSTILE))
    content["data"]["files"] = [HOSTILE[0], "caf\udce9.csv"]
    content["command"] = f"calibayes evaluate '{HOSTILE[2]}' {'y' * 300}"
    return content


@_fresh
def odd() -> dict[str, Any]:
    """One model of 64 classes, one of which never occurs; the true class once has probability zero; no command."""
    probs, targets = predictions(1200, 64, 1.6, 2.0, 1)
    targets[targets == 7] = 8
    probs[0, targets[0]] = 0
    probs /= probs.sum(1, keepdims=True)
    return study({"only": probs}, targets, class_names=[f"class {index}" for index in range(64)], replicates=60).to_dict()


@_fresh
def large() -> dict[str, Any]:
    names = [f"a class with name {index:03}" for index in range(1000)]
    return simulated({f"model {index}": 0.7 + 0.15 * index for index in range(6)}, 1000, 1000, 10, names)
