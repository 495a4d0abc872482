"""Descriptions of sets, thresholds and monitors that are damaged: the error names the field, whichever it is."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import torch
from tests.metrics.simulated import classifier

from calibayes.acting import (
    ClassThresholds,
    CostThreshold,
    CrossConformalSets,
    PredictionSets,
    ShiftMonitor,
    Threshold,
    certify_class_thresholds,
    certify_cost,
    conformal_sets,
    cross_conformal_sets,
)
from calibayes.errors import ModelFileError

PROBS, LABELS = classifier(400, 1.0, seed=0, classes=3)
MONITOR = ShiftMonitor(torch.rand(20, generator=torch.Generator().manual_seed(0)))
MONITOR.update(torch.rand(5, generator=torch.Generator().manual_seed(1)))
SAVED: list[Any] = [
    Threshold.fit(PROBS, LABELS, 0.7),
    Threshold.fit(PROBS, LABELS, 0.999),
    certify_class_thresholds(PROBS, LABELS, 0.7),
    certify_cost(PROBS, LABELS, 1 - torch.eye(3), 0.4),
    certify_cost(PROBS, LABELS, 1 - torch.eye(3), 0.001),
    conformal_sets(PROBS, LABELS, 0.9, "raps", seed=3),
    conformal_sets(PROBS, LABELS, 0.8, per="class"),
    conformal_sets(PROBS, LABELS, 0.8, per="group", groups=LABELS % 2),
    cross_conformal_sets(PROBS, LABELS, torch.arange(400) % 2),
    MONITOR,
]


@pytest.mark.parametrize("saved", SAVED, ids=lambda each: each.to_dict()["kind"])
def test_what_is_whole_is_read_and_what_is_damaged_is_named(saved: Any) -> None:
    plain = json.loads(json.dumps(saved.to_dict(), allow_nan=False))
    assert type(saved).from_dict(plain).to_dict() == plain
    for name in plain:
        for damage in ("nonsense", [[1], 2], {"a": 1}, -1, float("nan"), 10**400, "missing"):
            broken = {**copy.deepcopy(plain), name: damage}
            if damage == "missing":
                del broken[name]
            place = "description of the kind" if name == "kind" else f"'{name}' "
            if name == "seed" and damage == 10**400:
                continue  # a seed like any other
            if isinstance(saved, CostThreshold) and name in ("value", "cost", "mean_cost") and damage == -1:
                continue  # a gain
            with pytest.raises(ModelFileError, match=f"Expected .*{place}"):
                type(saved).from_dict(broken)
    others: list[Any] = [None, [], "text"]
    for other in others:
        with pytest.raises(ModelFileError, match="Expected a description of the kind"):
            type(saved).from_dict(other)


@pytest.mark.parametrize(
    ("kind", "index", "change", "message"),
    [
        (Threshold, 0, {"errors": 401}, "'errors' of the description of the kind 'threshold' to be a whole number from 0 to"),
        (Threshold, 0, {"accuracy": 1.5}, "'accuracy' .* between 0 and 1, both excluded, but got '1.5'"),
        (ClassThresholds, 2, {"thresholds": [{"kind": "threshold"}]}, "'rows' of 'thresholds' 0 of the description"),
        (CostThreshold, 3, {"rows": 0}, "'rows'"),
        (PredictionSets, 5, {"thresholds": [0.1, 0.2]}, "'thresholds' .* a list of 1, as 'all' says"),
        (PredictionSets, 6, {"counts": [1]}, "'counts' .* a list of 3, as 'class' says"),
        (PredictionSets, 5, {"score": {"name": "laq"}}, "'name' of 'score' of the description .* one of lac, aps, raps, top-k"),
        (CrossConformalSets, 8, {"fold_scores": [[0.2, 0.1], [0.1]]}, "'fold_scores' .* in ascending order"),
        (ShiftMonitor, 9, {"bag": [0.5]}, "'bag' .* more numbers than the 5"),
        (ShiftMonitor, 9, {"accounts": [[1.0]]}, r"'accounts' .* shape \[2, 3, 5\]"),
        (ShiftMonitor, 9, {"alarm_at": 6}, "'alarm_at' .* from 1 to 5"),
    ],
)
def test_values_that_contradict_each_other_are_named(kind: Any, index: int, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        kind.from_dict({**SAVED[index].to_dict(), **change})


def test_a_monitor_of_the_largest_capital_is_read() -> None:
    monitor = ShiftMonitor(torch.rand(50, generator=torch.Generator().manual_seed(2)))
    monitor._accounts[:] = 1e300
    monitor.highest = monitor.capital
    again = ShiftMonitor.from_dict(json.loads(json.dumps(monitor.to_dict(), allow_nan=False)))
    assert again.capital == monitor.capital == again.highest
