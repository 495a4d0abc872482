"""The whole comparison on one task: choose the bases, then every method's settings, then run all seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.methods.contenders import CONTENDERS, Contender
from benchmarks.methods.scoring import refined, scored
from benchmarks.methods.tasks import Task
from calibayes.sweeps import sweep

__all__ = ["Study"]

_TRIAL = "benchmarks.methods.trials:trial"


@dataclass
class Study:
    """A comparison under way: trials are kept in a folder, and those that are there are not run again."""

    task: Task
    folder: Path
    workers: int
    rows: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> list[dict[str, Any]]:
        """All rows: one for each base, method and seed."""
        for base, tries in self.task.bases.items():
            self._base(base, tries)
        return self.rows

    def _base(self, base: str, tries: tuple[dict[str, Any], ...]) -> None:
        contenders = [each for each in CONTENDERS if base in each.bases and self._wanted(each)]
        first = self._trials(self._settings(base, each, "fnn", {}) for each in tries)
        chosen, told = _chosen(tries, first, self.task)
        members = {
            (seed, member): self._settings(base, chosen, "fnn", {}, seed, member, keep=_name(base, "fnn", seed, member))
            for seed in range(self.task.seeds)
            for member in range(self.task.members)
        }
        points = dict(zip(members, self._trials(members.values()), strict=True))
        picked: dict[str, dict[str, Any]] = {}
        for each in contenders:
            if each.name == "fnn":
                found = [points[seed, 0] for seed in range(self.task.seeds)]
                self._record(base, chosen, each, {}, told, found, [0.0] * self.task.seeds)
            elif each.start == "members":
                self._members(base, chosen, each, points, picked)
            else:
                self._tried(base, chosen, each, points, picked)

    def _wanted(self, contender: Contender) -> bool:
        return not self.task.methods or contender.name in self.task.methods

    def _tried(
        self, base: str, chosen: dict[str, Any], each: Contender, points: Mapping[Any, Any], picked: dict[str, dict[str, Any]]
    ) -> None:
        """A method with settings of its own: four tries with the first seed, the best of them with all."""
        if each.name == "mc-dropout" and "input_dropout" in chosen:
            tries: tuple[dict[str, Any], ...] = ({},)  # the base has its dropout: it only stays on
        else:
            tries = tuple({**_inherited(each.name, picked), **settings} for settings in each.tries)
        told: list[dict[str, Any]] = []
        best = tries[0]
        if len(tries) > 1:
            first = self._trials(self._settings(base, chosen, each.name, settings, start=each.start) for settings in tries)
            best, told = _chosen(tries, first, self.task)
        picked[each.name] = best
        found = self._trials(
            self._settings(base, chosen, each.name, best, seed, start=each.start, keep=_name(base, each.name, seed, 0))
            for seed in range(self.task.seeds)
        )
        before = [points[seed, 0]["training_seconds"] if each.start == "point" else 0.0 for seed in range(self.task.seeds)]
        self._record(base, chosen, each, best, told, found, before)

    def _members(
        self, base: str, chosen: dict[str, Any], each: Contender, points: Mapping[Any, Any], picked: dict[str, dict[str, Any]]
    ) -> None:
        """An ensemble of what is trained already, but for the warm mean fields of members other than the first."""
        seeds, members = range(self.task.seeds), range(self.task.members)
        of, best = "fnn", {}
        before = [sum(points[seed, member]["training_seconds"] for member in members) for seed in seeds]
        if each.name == "mixture":
            of, best = "warm-mean-field", picked["warm-mean-field"]
            warm = self._trials(
                self._settings(base, chosen, of, best, seed, member, start="point", keep=_name(base, of, seed, member))
                for seed in seeds
                for member in members
            )
            spent = [trial["training_seconds"] for trial in warm]
            before = [before[seed] + sum(spent[seed * len(members) : (seed + 1) * len(members)]) for seed in seeds]
        found = self._trials(
            self._settings(
                base,
                chosen,
                each.name,
                best,
                seed,
                start="members",
                points=[_name(base, of, seed, member) for member in members],
            )
            for seed in seeds
        )
        self._record(base, chosen, each, best, [], found, before)

    def _settings(
        self,
        base: str,
        base_settings: dict[str, Any],
        method: str,
        tried: dict[str, Any],
        seed: int = 0,
        member: int = 0,
        *,
        start: str = "scratch",
        keep: str = "",
        points: list[str] | None = None,
    ) -> dict[str, Any]:
        return {
            "task": self.task.name,
            "base": base,
            "base_settings": base_settings,
            "method": method,
            "tried": tried,
            "seed": seed,
            "member": member,
            "start": start,
            "keep": keep,
            "points": points or [_name(base, "fnn", seed, member)],
            "folder": str(self.folder),
        }

    def _trials(self, settings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        label = "{task}-{base}-{method}-seed{seed}"
        found = sweep(_TRIAL, list(settings), self.folder / "trials", label=label, workers=self.workers)
        for trial in found:
            if trial.error is not None:
                raise SystemExit(f"A trial failed: {trial.settings}: {trial.error}")
        return [trial.result or {} for trial in found]

    def _record(
        self,
        base: str,
        chosen: dict[str, Any],
        each: Contender,
        best: dict[str, Any],
        tries: list[dict[str, Any]],
        found: list[dict[str, Any]],
        before: list[float],
    ) -> None:
        for seed, (result, seconds) in enumerate(zip(found, before, strict=True)):
            self.rows.append(
                {
                    "task": self.task.name,
                    "base": base,
                    "method": each.name,
                    "title": each.title,
                    "seed": seed,
                    "base_settings": chosen,
                    "settings": best,
                    "tries": tries,
                    **scored(result["validation"], result["test"], self.task.splits()),
                    "cost": {
                        "trainings": each.trainings * (self.task.members if each.start == "members" else 1),
                        "training_seconds": seconds + result["training_seconds"],
                        "passes": result["passes"],
                        "prediction_seconds_per_example": result["prediction_seconds_per_example"],
                    },
                }
            )


def _inherited(method: str, picked: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """What a method takes over from one that was chosen before it."""
    return picked["bnn"] if method == "ca-bnn" else {}


def _name(base: str, method: str, seed: int, member: int) -> str:
    return f"{base}-{method}-seed{seed}-member{member}"


def _chosen(
    tries: tuple[dict[str, Any], ...], found: list[dict[str, Any]], task: Task
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The settings with the lowest validation NLL after temperature scaling, and what was tried."""
    told: list[dict[str, Any]] = [
        {"settings": settings, "validation_refined_nll": refined(result["validation"], task.splits())}
        for settings, result in zip(tries, found, strict=True)
    ]
    best = min(told, key=lambda each: float(each["validation_refined_nll"]))
    return dict(best["settings"]), told
