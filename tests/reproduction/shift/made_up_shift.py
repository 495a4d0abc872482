"""Made-up results of an experiment under shift."""

from __future__ import annotations

from typing import Any

from calibayes.data.corrupt import SEVERITIES
from reproduction.experiment_results import PartResults
from reproduction.experiments import experiment
from reproduction.shift.people import PEOPLE_SCORES
from reproduction.shift.shift_experiments import METHODS_UNDER_SHIFT
from reproduction.shift.shift_tasks import TASKS

__all__ = ["made_up_parts", "nll"]


def nll(method: str, seed: int, shift: int, severity: int, way: str) -> float:
    """The NLL that is made up for a training: exact in all its arguments, so that means can be foretold."""
    place = METHODS_UNDER_SHIFT.index(method)
    return 1.0 + 0.2 * severity + 0.01 * place + 0.001 * seed + 0.1 * shift - (0.05 if way == "scaled" else 0.0)


def made_up_parts(name: str) -> list[PartResults]:
    """Results of every part with all its seeds."""
    asked = experiment(name)
    shifts = TASKS[name.removeprefix("shift-")].shifts
    parts = []
    for part in asked.parts:
        results = []
        for each in part.settings:

            def scores(shift: int, severity: int, method: str = each.scheme, seed: int = each.seed) -> dict[str, Any]:
                ways = {way: nll(method, seed, shift, severity, way) for way in ("plain", "scaled")}
                return {
                    way: {"nll": value, "ece": value / 10, "aurc": value / 20, "accuracy": 1 - value / 4, "brier": value / 3}
                    for way, value in ways.items()
                }

            final: dict[str, Any] = {
                "temperature": 1.5,
                "all_test": scores(0, 0),
                "unshifted": scores(0, 0),
                "shifts": {
                    shift: {str(severity): scores(place, severity) for severity in SEVERITIES}
                    for place, shift in enumerate(shifts)
                },
            }
            if name == "shift-cifar10":
                final["people"] = {way: _people(each.scheme, each.seed, way) for way in ("plain", "scaled")}
            results.append({"final": final})
        parts.append(PartResults(part, part.settings, tuple(results)))
    return parts


def _people(method: str, seed: int, way: str) -> dict[str, Any]:
    values = {score: nll(method, seed, place, 0, way) / 10 for place, score in enumerate(PEOPLE_SCORES)}
    intervals = {f"{score}_interval": [value - 0.01, value + 0.01] for score, value in values.items()}
    return {**values, **intervals}
