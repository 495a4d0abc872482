"""The results of an experiment's trainings, part by part."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibayes.recipes.single_training import TrainingSettings
from calibayes.sweeps import Trial
from reproduction.experiments import Experiment, ExperimentPart

__all__ = ["PartResults", "number_at", "part_results"]

Floats = NDArray[np.float64]
Number = TypeVar("Number")


@dataclass(frozen=True)
class PartResults:
    """The results of a part, in the order of its seeds; those that are missing or failed are left out."""

    part: ExperimentPart  # what was asked for
    settings: tuple[TrainingSettings, ...]  # of the trainings that there are
    results: tuple[dict[str, Any], ...]  # of the same

    @property
    def name(self) -> str:
        """The part's name."""
        return self.part.name

    @property
    def missing(self) -> int:
        """The number of trainings without a result."""
        return len(self.part.settings) - len(self.results)

    def final(self, *path: str) -> Floats:
        """One number of the trained network for each seed, such as ``final("test", "ece")``."""
        return np.array([number_at(result["final"], path) for result in self.results], dtype=np.float64)

    def by_seed(self, number: Callable[[list[dict[str, Any]]], Number]) -> dict[int, Number]:
        """One number for each seed, computed from the epochs that were scored."""
        pairs = zip(self.settings, self.results, strict=True)
        return {each.seed: number([epoch for epoch in result["epochs"] if "test" in epoch]) for each, result in pairs}

    def over_epochs(self, *path: str) -> tuple[Floats, Floats]:
        """The epochs that were scored, and one number for each seed (row) and epoch (column)."""
        epochs = self.by_seed(lambda scored: [epoch["epoch"] for epoch in scored])
        values = self.by_seed(lambda scored: [number_at(epoch, path) for epoch in scored])
        return np.array(next(iter(epochs.values()), []), dtype=np.float64), np.array(list(values.values()), dtype=np.float64)

    def epoch_seconds(self) -> float:
        """The time of an epoch of training when nothing else runs: the fastest of all."""
        return float(min(epoch["seconds"] for result in self.results for epoch in result["epochs"]))


def part_results(experiment: Experiment, trials: Iterable[Trial]) -> list[PartResults]:
    """The results of every part of an experiment among these trials."""
    known = {_key(trial.settings): trial.result for trial in trials if trial.error is None and trial.result is not None}
    found = []
    for part in experiment.parts:
        there = [(each, known[_key(each.to_dict())]) for each in part.settings if _key(each.to_dict()) in known]
        found.append(PartResults(part, tuple(each for each, _ in there), tuple(result for _, result in there)))
    return found


def _key(settings: dict[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True)


def number_at(tree: Any, path: tuple[str, ...]) -> float:
    """The number at the end of a path of names."""
    for name in path:
        tree = tree[name]
    return float(tree)
