"""The comparison on one task: choose all settings on validation examples, then train all seeds and look at the test."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.methods.contenders import CONTENDERS, Contender
from benchmarks.methods.tasks import TASKS, Task
from benchmarks.methods.trained_posteriors import ROOT, Recipe
from calibayes.sweeps import sweep

__all__ = ["Study", "stored_results"]

_TRIALS = "benchmarks.methods.trials:"
_VERSION = 1  # raise it when the same recipe would give another result


class Choice(NamedTuple):
    """Settings that were chosen, and all that were tried with their validation NLL."""

    settings: dict[str, Any]
    tries: list[dict[str, Any]]


class Study:
    """A comparison under way: what is in its folder is not trained again.

    No test example is predicted before every base and every method has its settings. A method that fails is a row with its
    error.

    Args:
        task: the data and the network.
        results: the folder of all results; the task has one of its own there.
        workers: trainings at a time.
    """

    def __init__(self, task: Task, results: Path, workers: int) -> None:
        self.task, self.results, self.workers = task, results, workers
        self.folder = results / task.name / "runs"
        self.bases: dict[str, Choice] = {}
        self.methods: dict[tuple[str, str], Choice | str] = {}  # an error instead of a choice

    def run(self) -> list[dict[str, Any]]:
        """All rows: one for each base, method and seed."""
        for base, tries in self.task.bases.items():
            self._choose(base, tries)
        return [row for base in self.bases for each in self._contenders(base) for row in self._rows(base, each)]

    def _contenders(self, base: str) -> list[Contender]:
        return [each for each in CONTENDERS if base in each.bases and each.name in self.task.methods]

    def _choose(self, base: str, tries: tuple[dict[str, Any], ...]) -> None:
        """Settings of a base and of all methods on it, by validation examples."""
        self.bases[base] = self._best([Recipe(task=self.task.name, method="fnn", base=each) for each in tries], tries)
        if self.task.settings_from is not None:
            self._take_over(base)
            return
        for each in self._contenders(base):
            before: dict[str, Any] = {}
            if each.settings_of is not None:
                found = self.methods[base, each.settings_of]
                if isinstance(found, str):
                    self.methods[base, each.name] = found
                    continue
                before = found.settings
            settings = [before | each_try for each_try in self._tries(base, each)]
            recipes = [self._recipe(base, each.name, tried, 0) for tried in settings]
            try:
                self.methods[base, each.name] = self._best(recipes, settings)
            except _AllFailedError as error:
                self.methods[base, each.name] = str(error)

    def _tries(self, base: str, each: Contender) -> tuple[dict[str, Any], ...]:
        if each.name == "mc-dropout" and self.bases[base].settings.get("input_dropout"):
            return ({},)  # the base has its dropout: it only stays on
        return each.tries

    def _take_over(self, base: str) -> None:
        """The settings that another task has chosen for its base of the same name."""
        other = TASKS[str(self.task.settings_from)]
        stored = stored_results(self.results, other)
        if stored is None:
            raise SystemExit(f"Its settings are those of another task. First run: python -m benchmarks.methods {other.name}")
        for row in stored["rows"]:
            if row["base"] == base and row["method"] in self.task.methods:
                self.methods[base, row["method"]] = Choice(row["settings"], []) if "settings" in row else row["error"]

    def _best(self, recipes: Sequence[Recipe], settings: Sequence[dict[str, Any]]) -> Choice:
        """The settings with the lowest validation NLL; those of a method with nothing to choose are not tried."""
        if len(recipes) == 1:
            return Choice(dict(settings[0]), [])
        seeds = range(self.task.choice_seeds)
        every = [{"recipe": asdict(replace(each, seed=seed))} for each in recipes for seed in seeds]
        trials = list(self._swept("validation_trial", every))
        told: list[dict[str, Any]] = []
        for place, each in enumerate(settings):
            found = [trial.result and trial.result["nll"] for trial in trials[place * len(seeds) : (place + 1) * len(seeds)]]
            known = all(isinstance(nll, float) and math.isfinite(nll) for nll in found)
            told.append({"settings": each, "validation_nll": fmean(found) if known else None})
        finite = [each for each in told if each["validation_nll"] is not None]
        if not finite:
            error = next((trial.error for trial in trials if trial.error is not None), None)
            raise _AllFailedError("NLL not finite" if error is None else f"{error.type}: {error.message}")
        return Choice(dict(min(finite, key=lambda each: each["validation_nll"])["settings"]), told)

    def _rows(self, base: str, each: Contender) -> list[dict[str, Any]]:
        """All seeds of a method, with test examples."""
        own, chosen = self.bases[base], self.methods[base, each.name]
        about: dict[str, Any] = {"task": self.task.name, "base": base, "method": each.name, "title": each.title}
        if isinstance(chosen, str):
            return [{**about, "seed": seed, "error": chosen} for seed in range(self.task.seeds)]
        about |= {
            "base_settings": {} if each.start == "learner" else own.settings,
            "settings": chosen.settings,
            "tries": own.tries if each.name == "fnn" else chosen.tries,
            "trainings": self._trainings(base, each),
        }
        recipes = [self._recipe(base, each.name, chosen.settings, seed) for seed in range(self.task.seeds)]
        keep = each.name in ("fnn", "ca-fnn")  # others are made from these
        trials = self._swept("final_trial", [{"recipe": asdict(recipe), "keep": keep} for recipe in recipes])
        return [
            {**about, "seed": recipe.seed, **(trial.result or {"error": str(trial.error)})}
            for recipe, trial in zip(recipes, trials, strict=True)
        ]

    def _trainings(self, base: str, each: Contender) -> float:
        """Epochs of training, in multiples of those of the plain base."""
        longer = _length(self.bases[base].settings) / _length(next(iter(self.bases.values())).settings)
        members = self.task.members if each.start == "members" else 1
        return 0.0 if each.start == "learner" else float(longer * each.trainings * members)

    def _recipe(self, base: str, method: str, tried: dict[str, Any], seed: int) -> Recipe:
        learner = next(each for each in CONTENDERS if each.name == method).start == "learner"
        settings = {} if learner else self.bases[base].settings
        return Recipe(task=self.task.name, method=method, seed=seed, base=settings, tried=tried)

    def _swept(self, trial: str, settings: list[dict[str, Any]]) -> Any:
        # Relative, so that records made in one checkout are known in another.
        posteriors = (self.folder / f"posteriors-{_VERSION}").resolve()
        folder = posteriors.relative_to(ROOT) if posteriors.is_relative_to(ROOT) else posteriors
        every = [{**each, "folder": folder.as_posix()} for each in settings]
        records = self.folder / trial
        return sweep(_TRIALS + trial, every, records, version=_VERSION, workers=self.workers, threads=1, progress=True)


def _length(base: dict[str, Any]) -> float:
    return float(base.get("epochs") or base["steps"])


def stored_results(results: Path, task: Task) -> dict[str, Any] | None:
    """What is written down of a task as it is now; None if that is nothing, or of an earlier form of the task."""
    path = results / task.name / "results.json"
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return stored if stored.get("task") == task.title else None


class _AllFailedError(Exception):
    """No setting of a method could be trained."""
