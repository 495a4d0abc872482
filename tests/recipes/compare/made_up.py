"""Differences between contenders, and a comparison, with numbers made up for a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from tests.recipes.compare.blobs import BLOBS, TINY

import calibayes as cb
from calibayes.recipes.compare import Comparison, MethodRun
from calibayes.recipes.compare.baselines import BaselineChoice
from calibayes.recipes.compare.contenders import CONTENDERS, Contender
from calibayes.recipes.compare.recommendation import COMPARED, Differences, decide

BASELINES = (Contender("logistic-regression", False), Contender("boosted-trees", False))
BY_NAME = {str(each): each for each in (*BASELINES, *CONTENDERS)}
NOISE = torch.randn(2, 500, generator=torch.Generator().manual_seed(0))


def made_up(
    nll: Mapping[str, float] | None = None,
    *,
    ece: Mapping[str, float] | None = None,
    accuracy: Mapping[str, float] | None = None,
    seeds: Sequence[float] = (-0.001, 0.0, 0.0005, 0.001, -0.0005),
    test_error: float = 0.001,
    contenders: Sequence[Contender] = CONTENDERS,
) -> Differences:
    """NLL 0.5, ECE 0.03 and accuracy 0.8 but for those named.

    Contenders share the shift of each seed but for a part of their own, and have their own luck with the examples.
    """
    told = {"nll": (0.5, nll or {}), "ece": (0.03, ece or {}), "accuracy": (0.8, accuracy or {}), "brier": (0.3, {})}
    values: dict[Contender, dict[str, list[float]]] = {}
    draws = {}
    for place, contender in enumerate(contenders):
        means = {score: named.get(str(contender), usual) for score, (usual, named) in told.items()}
        own = [shift * (1 + 0.1 * place) for shift in seeds]
        values[contender] = {score: [means[score] + shift for shift in own] for score in COMPARED}
        luck = test_error * (NOISE[0] + 0.5 * (place % 2) * NOISE[1])
        draws[contender] = {score: (means[score] + luck * (1 + 0.5 * (place // 2))).double()[None] for score in COMPARED}
    return Differences(values, draws)


def made_up_comparison(
    validation: Differences, test: Differences | None = None, settings: Mapping[str, Any] | None = None
) -> Comparison:
    """A comparison with these differences; only scores that are read from entries are made up here."""
    measured = cb.evaluate(torch.tensor([[0.5, 0.5]]), torch.tensor([0]), intervals=False)
    test = validation if test is None else test
    entries = {}
    for each, values in test.values.items():
        scores = [replace(measured, nll=nll, accuracy=0.8, ece=0.03) for nll in values["nll"]]
        run = MethodRun(each.scheme, 3.0 if each.scheme.startswith("ca") else 0.0, 0.1 if "bnn" in each.scheme else 0.0, 0)
        choices = [BaselineChoice(0.1, "sigmoid")] * len(scores) if each.baseline else []
        temperatures = [1.5 if each.scaled else 1.0] * len(scores)
        entries[each] = SimpleNamespace(contender=each, run=run, choices=choices, temperatures=temperatures, test=scores)
    seeds = len(next(iter(test.values.values()))["nll"])
    every: Any = replace(TINY, seeds=seeds, **(settings or {}))
    trainings: Any = SimpleNamespace(task=BLOBS, settings=every, data=BLOBS.load(96, 80, 150))
    found: Any = entries
    return Comparison(trainings, found, validation, test, decide(validation))
