"""Results that were never trained, with known scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reproduction.experiment import ExperimentPart
from reproduction.experiment_results import PartResults
from reproduction.experiments import experiment

NOISE = (0.001, -0.002, 0.0015, -0.0005, 0.0, 0.0007, -0.0012, 0.0004, 0.0009, -0.0003)
Way = Sequence[tuple[float, float]]


def made_up(
    part: ExperimentPart, ece: float, accuracy: float = 0.6, scaled: float = 0.05, nll: float = 1.0, way: Way = ()
) -> PartResults:
    """A part whose trainings end at these scores (and a little noise); on ``way`` there are pairs of ECE and accuracy."""
    results = []
    for index, _ in enumerate(part.settings):
        noise = NOISE[index]
        looks = [_look(k + 1, error + noise, right, scaled, nll) for k, (error, right) in enumerate((*way, (ece, accuracy)))]
        results.append({"epochs": looks, "final": looks[-1], "training_seconds": 1.0})
    return PartResults(part, part.settings, tuple(results))


def _look(epoch: int, ece: float, accuracy: float, scaled: float, nll: float) -> dict[str, Any]:
    scores = {"ece": ece, "accuracy": accuracy, "nll": nll, "brier": 0.5}
    return {
        "epoch": epoch,
        "test": scores,
        "validation": dict(scores),
        "scaled": {**scores, "ece": scaled},
        "temperature": 1.0,
    }


def newsgroups(**errors: Any) -> list[PartResults]:
    """What claims are about: an ECE of 0.2, or what is given by name (``hard``, ``hard30``, ``bnn``, ``cabnn30`` …)."""
    found = {}
    for name in ("newsgroups-epochs", "newsgroups-lambda", "newsgroups-variations"):
        for part in experiment(name).parts:
            given = errors.get(_short(part), 0.2)
            found[part.name] = made_up(part, **given) if isinstance(given, dict) else made_up(part, given)
    return list(found.values())


def _short(part: ExperimentPart) -> str:
    first = part.settings[0]
    if ":" in part.name:
        return f"{first.scores}{first.lam:g}" if part.name.endswith("hard scores") else part.name
    if part.name.endswith(("scores", "differentiable")):
        return "hard" if first.scores == "hard" else "soft"
    return first.scheme.replace("-", "") + (f"{first.lam:g}" if first.lam else "")
