"""Differences between contenders with numbers made up for a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from calibayes.recipes.compare.contenders import CONTENDERS, Contender
from calibayes.recipes.compare.recommendation import COMPARED, Differences

BY_NAME = {str(each): each for each in CONTENDERS}
NOISE = torch.randn(2, 500, generator=torch.Generator().manual_seed(0))


def made_up(
    nll: Mapping[str, float] | None = None,
    *,
    ece: Mapping[str, float] | None = None,
    accuracy: Mapping[str, float] | None = None,
    seeds: Sequence[float] = (-0.001, 0.0, 0.0005, 0.001, -0.0005),
    test_error: float = 0.001,
) -> Differences:
    """NLL 0.5, ECE 0.03 and accuracy 0.8 but for those named.

    Contenders share the shift of each seed but for a part of their own, and have their own luck with the test examples.
    """
    told = {"nll": (0.5, nll or {}), "ece": (0.03, ece or {}), "accuracy": (0.8, accuracy or {}), "brier": (0.3, {})}
    values: dict[Contender, dict[str, list[float]]] = {}
    draws = {}
    for place, contender in enumerate(CONTENDERS):
        means = {score: named.get(str(contender), usual) for score, (usual, named) in told.items()}
        own = [shift * (1 + 0.1 * place) for shift in seeds]
        values[contender] = {score: [means[score] + shift for shift in own] for score in COMPARED}
        luck = test_error * (NOISE[0] + 0.5 * (place % 2) * NOISE[1])
        draws[contender] = {score: (means[score] + luck * (1 + 0.5 * (place // 2))).double()[None] for score in COMPARED}
    return Differences(values, draws)
