"""What the trainings of an experiment came to, part by part."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibayes.recipes.reproduce.experiments import Experiment, Part
from calibayes.recipes.reproduce.training import Training
from calibayes.sweeps import Trial

__all__ = ["FoundPart", "found_parts"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FoundPart:
    """The results of a part, in the order of its seeds; those that are missing or failed are left out.

    Attributes:
        part: what was asked for.
        settings: of the trainings that there are.
        results: of the same.
    """

    part: Part
    settings: tuple[Training, ...]
    results: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.part.name

    @property
    def missing(self) -> int:
        """How many trainings it has yet to come to."""
        return len(self.part.settings) - len(self.results)

    def final(self, *path: str) -> Floats:
        """One number of the trained network for each seed, such as ``final("test", "ece")``."""
        return np.array([_at(result["final"], path) for result in self.results], dtype=np.float64)

    def over_epochs(self, *path: str) -> tuple[Floats, Floats]:
        """The epochs that were looked at, and one number for each seed (row) and epoch (column)."""
        rows = [[epoch for epoch in result["epochs"] if path[0] in epoch] for result in self.results]
        epochs = [epoch["epoch"] for epoch in rows[0]] if rows else []
        values = [[_at(epoch, path) for epoch in row] for row in rows]
        return np.array(epochs, dtype=np.float64), np.array(values, dtype=np.float64)

    def epoch_seconds(self) -> float:
        """How long an epoch of training takes when nothing else runs: the fastest of all."""
        return float(min(epoch["seconds"] for result in self.results for epoch in result["epochs"]))


def found_parts(experiment: Experiment, trials: Iterable[Trial]) -> list[FoundPart]:
    """The results of every part of an experiment among these trials."""
    known = {_key(trial.settings): trial for trial in trials if trial.error is None}
    found = []
    for part in experiment.parts:
        there = [(each, known[_key(each.to_dict())]) for each in part.settings if _key(each.to_dict()) in known]
        results = tuple(result for _, trial in there if (result := trial.result) is not None)
        found.append(FoundPart(part, tuple(each for each, _ in there), results))
    return found


def _key(settings: dict[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True)


def _at(tree: Any, path: tuple[str, ...]) -> float:
    for name in path:
        tree = tree[name]
    return float(tree)
