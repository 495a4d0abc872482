"""The whole comparison on one task: choose all settings on validation examples, then train all seeds and look at the test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.methods.contenders import CONTENDERS, Contender
from benchmarks.methods.scoring import refined, scored
from benchmarks.methods.tasks import Task
from calibayes.sweeps import sweep

__all__ = ["Study"]

_TRIAL = "benchmarks.methods.trials:trial"


class Choice(NamedTuple):
    """Settings that were chosen, and what else was tried."""

    settings: dict[str, Any]
    tries: list[dict[str, Any]]


@dataclass
class Study:
    """A comparison under way: trials are kept in a folder, and those that are there are not run again.

    No test example is predicted before every base and every method has its settings.
    """

    task: Task
    folder: Path
    workers: int
    bases: dict[str, Choice] = field(default_factory=dict)
    methods: dict[tuple[str, str], Choice] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> list[dict[str, Any]]:
        """All rows: one for each base, method and seed."""
        for base, tries in self.task.bases.items():
            self._choose(base, tries)
        for base in self.bases:
            self._score(base)
        return self.rows

    def _contenders(self, base: str) -> list[Contender]:
        wanted = self.task.methods
        return [each for each in CONTENDERS if base in each.bases and (not wanted or each.name in wanted)]

    def _choose(self, base: str, tries: tuple[dict[str, Any], ...]) -> None:
        """Settings of a base and of all methods on it, by the first seed's validation examples."""
        self.bases[base] = self._best(tries, [self._settings(base, "fnn", {}, base_settings=each) for each in tries])
        self._trials([self._settings(base, "fnn", {}, keep=_name(base, "fnn", 0, 0))])  # what others start from
        for each in self._contenders(base):
            own = self._tries(base, each)
            if len(own) > 1:
                wanted = [self._settings(base, each.name, settings, start=each.start) for settings in own]
                self.methods[base, each.name] = self._best(own, wanted)
            else:
                self.methods[base, each.name] = Choice(dict(own[0]), [])

    def _tries(self, base: str, each: Contender) -> tuple[dict[str, Any], ...]:
        if each.name == "mc-dropout" and "input_dropout" in self.bases[base].settings:
            return ({},)  # the base has its dropout: it only stays on
        if each.name == "ca-bnn":
            return tuple({**self.methods[base, "bnn"].settings, **settings} for settings in each.tries)
        if each.name == "mixture":
            return (self.methods[base, "warm-mean-field"].settings,)
        return each.tries

    def _best(self, tries: tuple[dict[str, Any], ...], wanted: list[dict[str, Any]]) -> Choice:
        """The settings with the lowest validation NLL after temperature scaling."""
        found = self._trials(wanted)
        told: list[dict[str, Any]] = [
            {"settings": settings, "validation_refined_nll": refined(result["validation"], self.task.splits())}
            for settings, result in zip(tries, found, strict=True)
        ]
        best = min(told, key=lambda each: float(each["validation_refined_nll"]))
        return Choice(dict(best["settings"]), told)

    def _score(self, base: str) -> None:
        """All seeds of a base and of all methods on it, with test examples."""
        seeds, members = range(self.task.seeds), range(self.task.members)
        points = self._members(base, "fnn")
        for each in self._contenders(base):
            chosen = self.methods[base, each.name]
            before = [0.0 for _ in seeds]
            if each.start == "point":
                before = [points[seed, 0]["training_seconds"] for seed in seeds]
            elif each.start == "members":
                before = [sum(points[seed, member]["training_seconds"] for member in members) for seed in seeds]
            of = "fnn"
            if each.name == "mixture":
                of = "warm-mean-field"
                warm = self._members(base, of)
                before = [before[seed] + sum(warm[seed, member]["training_seconds"] for member in members) for seed in seeds]
            if each.name == "fnn":
                found = [points[seed, 0] for seed in seeds]
            else:
                found = self._trials(
                    self._settings(
                        base,
                        each.name,
                        chosen.settings,
                        seed,
                        start=each.start,
                        points=[_name(base, of, seed, member) for member in members] if each.start == "members" else None,
                        test=True,
                    )
                    for seed in seeds
                )
            self._record(base, each, found, before)

    def _members(self, base: str, method: str) -> dict[tuple[int, int], dict[str, Any]]:
        """The trained members of every seed, by seed and number."""
        start = "scratch" if method == "fnn" else "point"
        wanted = {
            (seed, member): self._settings(
                base,
                method,
                self.methods[base, method].settings,
                seed,
                member,
                start=start,
                keep=_name(base, method, seed, member),
                test=True,
            )
            for seed in range(self.task.seeds)
            for member in range(self.task.members)
        }
        return dict(zip(wanted, self._trials(wanted.values()), strict=True))

    def _settings(
        self,
        base: str,
        method: str,
        tried: dict[str, Any],
        seed: int = 0,
        member: int = 0,
        *,
        base_settings: dict[str, Any] | None = None,
        start: str = "scratch",
        keep: str = "",
        points: list[str] | None = None,
        test: bool = False,
    ) -> dict[str, Any]:
        return {
            "task": self.task.name,
            "base": base,
            "base_settings": self.bases[base].settings if base_settings is None else base_settings,
            "method": method,
            "tried": tried,
            "seed": seed,
            "member": member,
            "start": start,
            "keep": keep,
            "points": points or [_name(base, "fnn", seed, member)],
            "folder": str(self.folder),
            "test": test,
        }

    def _trials(self, settings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        label = "{task}-{base}-{method}-seed{seed}"
        found = sweep(_TRIAL, list(settings), self.folder / "trials", label=label, workers=self.workers)
        for trial in found:
            if trial.error is not None:
                raise SystemExit(f"A trial failed: {trial.settings}: {trial.error}")
        return [trial.result or {} for trial in found]

    def _record(self, base: str, each: Contender, found: list[dict[str, Any]], before: list[float]) -> None:
        own, chosen = self.bases[base], self.methods[base, each.name]
        longer = self._epochs(base) / self._epochs(next(iter(self.bases)))
        for seed, (result, seconds) in enumerate(zip(found, before, strict=True)):
            self.rows.append(
                {
                    "task": self.task.name,
                    "base": base,
                    "method": each.name,
                    "title": each.title,
                    "seed": seed,
                    "base_settings": own.settings,
                    "settings": chosen.settings,
                    "tries": own.tries if each.name == "fnn" else chosen.tries,
                    **scored(result["validation"], result["test"], self.task.splits()),
                    "cost": {
                        "trainings": longer * each.trainings * (self.task.members if each.start == "members" else 1),
                        "training_seconds": seconds + result["training_seconds"],
                        "passes": result["passes"],
                        "prediction_seconds_per_example": result["prediction_seconds_per_example"],
                    },
                }
            )

    def _epochs(self, base: str) -> int:
        return int(self.bases[base].settings.get("epochs", self.task.epochs))


def _name(base: str, method: str, seed: int, member: int) -> str:
    return f"{base}-{method}-seed{seed}-member{member}"
