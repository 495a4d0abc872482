"""The follow-up's further tables: outsiders, answers that were selected, and shifted inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reproduction.experiment_results import PartResults
from reproduction.followup_scores import COVERAGES, KNOWN_SOURCE, NEW_SOURCE

__all__ = ["outsider_tables"]

Row = tuple[str, ...]
_SCORES = ("max-prob", "entropy", "epistemic", "energy", "distance")


def outsider_tables(parts: Sequence[PartResults]) -> list[tuple[str, Row, list[Row]]]:
    """A title, the columns' names and the rows of each table, means over seeds; none without results."""
    return [_outsiders(KNOWN_SOURCE, parts), _outsiders(NEW_SOURCE, parts), _selected(parts), _shifted(parts)] if parts else []


def _outsiders(source: str, parts: Sequence[PartResults]) -> tuple[str, Row, list[Row]]:
    """How well confidences and other scores tell outsiders from insiders."""
    title = f"Outsiders of {source}: detection probability % and FPR at 95 % by confidence, AUROC % of each score"
    titles = ("detected", "FPR95", *_SCORES)
    paths = [("max-prob", "detection_probability"), ("max-prob", "fpr95"), *((score, "auroc") for score in _SCORES)]
    return title, titles, [(part.name, *(_percent(part, "outsiders", source, *path) for path in paths)) for part in parts]


def _selected(parts: Sequence[PartResults]) -> tuple[str, Row, list[Row]]:
    """What is left of ECE, accuracy and outsiders where some inputs are not answered."""
    title = "ECE % (accuracy %; outsiders answered % of either source) of answers chosen by the selector | by confidence"
    titles = tuple(f"{100 * coverage:g} % answered" for coverage in COVERAGES)
    return title, titles, [(part.name, *(_choices(part, f"{coverage:g}") for coverage in COVERAGES)) for part in parts]


def _choices(part: PartResults, coverage: str) -> str:
    shown = []
    for way in ("selector", "confidence"):
        path = "selective", coverage, way
        passed = ", ".join(_percent(part, *path, "outsiders", source, "passed") for source in (KNOWN_SOURCE, NEW_SOURCE))
        shown.append(f"{_percent(part, *path, 'ece')} ({_percent(part, *path, 'accuracy')}; {passed})")
    return " | ".join(shown)


def _shifted(parts: Sequence[PartResults]) -> tuple[str, Row, list[Row]]:
    """ECE on shifted inputs, plain and with the temperature that fits unshifted ones."""
    shifts = sorted(parts[0].results[0]["final"]["shift"])
    titles = ("no shift", *shifts)
    rows = []
    for part in parts:
        places: list[tuple[str, ...]] = [(), *(("shift", name) for name in shifts)]
        cells = [
            f"{_percent(part, *place, 'test', 'ece')} | {_percent(part, *place, 'scaled', 'ece')}"
            f" ({_percent(part, *place, 'test', 'accuracy')})"
            for place in places
        ]
        rows.append((part.name, *cells))
    return "ECE % | with the temperature of unshifted inputs (accuracy %) under a mild shift", titles, rows


def _percent(part: PartResults, *path: str) -> str:
    values = part.final(*path)
    return "–" if np.isnan(values).all() else f"{100 * np.nanmean(values):.1f}"
