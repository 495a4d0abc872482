"""Scores by severity: for each seed the mean over shifts, with Student's intervals over seeds."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from calibayes.data.corrupt import SEVERITIES
from reproduction.experiment_results import BySeed, Floats, PartResults, between

__all__ = ["STEPS", "WAYS", "SeverityCurve", "Way", "by_seed", "curve", "shift_names"]

Way = Literal["plain", "scaled"]
WAYS: dict[Way, str] = {"plain": "", "scaled": " + T"}
"""How predictions are scored, and what is added to a method's name for it: with a temperature or without."""

STEPS = (0, *SEVERITIES)
"""Severities, with 0 for test examples as they are."""


class SeverityCurve(NamedTuple):
    """A score at each of ``STEPS``: mean over seeds, and the ends of its interval, which are NaN for a single seed."""

    mean: Floats
    low: Floats
    high: Floats


def shift_names(part: PartResults) -> list[str]:
    """The shifts that a part was scored under."""
    return list(part.results[0]["final"]["shifts"])


def by_seed(part: PartResults, way: Way, score: str, severity: int, shift: str | None = None) -> BySeed:
    """A score of each training at a severity, under one shift or on average over all."""
    if severity == 0:
        values = part.final("unshifted", way, score)
    else:
        names = shift_names(part) if shift is None else [shift]
        values = np.mean([part.final("shifts", name, str(severity), way, score) for name in names], axis=0)
    return dict(zip((each.seed for each in part.settings), values.tolist(), strict=True))


def curve(part: PartResults, way: Way, score: str) -> SeverityCurve:
    """A score over severities, with 95 % intervals over seeds."""
    points = [between(part.name, by_seed(part, way, score, severity)) for severity in STEPS]
    mean = [each.value for each in points]
    ends = [(each.low, each.high) if each.seeds > 1 else (math.nan, math.nan) for each in points]
    low, high = np.array(ends, dtype=np.float64).T
    return SeverityCurve(np.array(mean, dtype=np.float64), low, high)
