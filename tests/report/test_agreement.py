"""The verdict, the intervals and the p-value agree, whatever the classifier is like."""

from __future__ import annotations

import math

import pytest
import torch
from tests.metrics.simulated import classifier, says
from torch import Tensor

from calibayes.metrics import Scores, confidence_interval, evaluate, reliability_bins
from calibayes.metrics.agreement import CLASS_ERRORS, CONFIDENCE_ERRORS, beyond_chance, excludes_zero
from calibayes.metrics.calibration_test import rejects
from calibayes.report.confidence_verdict import TemperatureEffect, temperature_effect, verdict

MISCALIBRATED = {"over-confident", "under-confident", "mixed", "miscalibrated", "nearly calibrated"}


def wavy(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Over- and underconfident in turn, and right on average."""
    r = 0.5 + 0.5 * torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return says(r, (r + 0.12 * torch.sin(4 * math.pi * (r - 0.5))).clamp(0, 1), seed)


def lopsided(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Ten points underconfident where it decides for class 0, and as much overconfident where it decides for class 1."""
    generator = torch.Generator().manual_seed(seed)
    r = 0.55 + 0.33 * torch.rand(n, generator=generator, dtype=torch.float64)
    decision = torch.randint(2, (n,), generator=generator)
    right = torch.rand(n, generator=generator, dtype=torch.float64) < torch.where(decision == 0, r + 0.1, r - 0.1)
    probs = torch.stack((r, 0.7 * (1 - r), 0.3 * (1 - r)), -1)
    probs[decision == 1] = probs[decision == 1][:, [1, 0, 2]]
    return probs, torch.where(right, decision, 1 - decision)


KINDS = {
    "calibrated": lambda n, seed: classifier(n, 1.0, seed=seed),
    "overconfident": lambda n, seed: classifier(n, 0.75, seed=seed),
    "slightly overconfident": lambda n, seed: classifier(n, 0.93, seed=seed),
    "underconfident": lambda n, seed: classifier(n, 1.3, seed=seed),
    "wavy": wavy,
    "classwise": lopsided,
}


def check(scores: Scores, effect: TemperatureEffect | None) -> str:
    """Nothing on the page contradicts anything else; the kind of the verdict."""
    said = verdict(scores, effect)
    rejected = rejects(scores.kce_p_value, 0.95)
    assert (said.kind in MISCALIBRATED) == rejected
    outside = [name for name in CONFIDENCE_ERRORS if excludes_zero(scores.intervals[name])]
    assert rejected or not outside, outside
    assert said.kind not in ("over-confident", "under-confident") or "overconfidence" in outside
    assert said.kind != "mixed" or "ece" in outside
    assert "no sign of miscalibration" not in said.text.lower() or not outside
    classes = [name for name in CLASS_ERRORS if excludes_zero(scores.intervals[name])]
    assert ("probabilities of single classes" in said.text) == ("ece_classwise" in classes)
    assert not classes or "ece_classwise" in classes
    shown = "p ≤ 0.001" if scores.kce_p_value == 0.001 else f"p = {scores.kce_p_value:.3f}"
    assert shown in said.text
    if effect is not None and not effect.ece_after < effect.ece_before:
        assert "would fix" not in said.text
    return said.kind


@pytest.mark.parametrize("n", [40, 300, 3000])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_contradicts_anything_else(kind: str, n: int) -> None:
    for seed in range(6):
        probs, targets = KINDS[kind](n, seed)
        scores = evaluate(probs, targets, replicates=100, seed=seed)
        found = check(scores, temperature_effect(probs, targets, seed=seed))
        coloured = beyond_chance(reliability_bins(probs, targets), scores.kce_p_value, 0.95)
        assert found in MISCALIBRATED or not bool(coloured.any())
        if n == 3000:
            expected = {"overconfident": {"over-confident"}, "underconfident": {"under-confident"}, "wavy": {"mixed"}}
            assert found in expected.get(kind, {found})


def test_classes_that_are_off_are_told_although_the_confidence_is_right() -> None:
    probs, targets = lopsided(3000, 1)
    scores = evaluate(probs, targets, replicates=200)
    assert scores.kce_p_value > 0.05
    assert " But the probabilities of single classes are miscalibrated (classwise ECE " in verdict(scores, None).text


@pytest.mark.slow
def test_calibrated_classifiers_are_rarely_called_anything_else() -> None:
    called = classes = 0
    for seed in range(100):
        scores = evaluate(*classifier(150, 1.0, seed=seed, classes=2 + 2 * (seed % 2)), replicates=60, seed=seed)
        called += check(scores, None) in MISCALIBRATED
        classes += excludes_zero(scores.intervals["ece_classwise"])
    assert called <= 13  # of 100 at 5 %: more in 1 of 1,000 such experiments
    assert classes <= 13


@pytest.mark.parametrize("name", CONFIDENCE_ERRORS)
def test_an_interval_alone_agrees_with_the_test_too(name: str) -> None:
    for seed in range(3):
        probs, targets = classifier(120, 0.85, seed=seed)
        assert (
            confidence_interval(name, probs, targets, replicates=60) == evaluate(probs, targets, replicates=60).intervals[name]
        )
