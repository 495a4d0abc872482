"""All scores together."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from calibayes import metrics
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import METRICS, evaluate
from calibayes.metrics.intervals import Interval
from calibayes.metrics.score_table import BELOW

GENERATOR = torch.Generator().manual_seed(0)
PROBS = (3 * torch.randn(400, 6, generator=GENERATOR)).softmax(-1)
TARGETS = torch.where(
    torch.rand(400, generator=GENERATOR) < 0.4, PROBS.argmax(-1), torch.randint(6, (400,), generator=GENERATOR)
)
WEIGHTS = torch.rand(400, generator=GENERATOR)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_every_field_is_the_function_of_its_name(weights: torch.Tensor | None) -> None:
    scores = evaluate(PROBS, TARGETS, bins=10, weights=weights, intervals=False)
    parts = metrics.brier_decomposition(PROBS, TARGETS, 10, weights=weights)
    special = {
        "top_k": metrics.top_k_accuracy(PROBS, TARGETS, 5, weights=weights),
        "confidence": metrics.overconfidence(PROBS, TARGETS, weights=weights) + scores.accuracy,
        "brier_reliability": parts.reliability,
        "brier_resolution": parts.resolution,
        "brier_uncertainty": parts.uncertainty,
        "coverage_at_target": metrics.coverage_at_accuracy(PROBS, TARGETS, weights=weights),
    }
    binned = {"ece", "ece_equal_mass", "ece_classwise", "mce", "rms_calibration_error", "ece_squared_debiased"}
    for name, value in scores.values.items():
        if name in special:
            expected = special[name]
        else:
            arguments = {"bins": 10} if name in binned else {}
            expected = getattr(metrics, name)(PROBS, TARGETS, weights=weights, **arguments)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-15), name


def test_overconfidence_is_confidence_minus_accuracy_and_bounds_the_ece_from_below() -> None:
    scores = evaluate(PROBS, TARGETS, intervals=False)
    assert scores.overconfidence == scores.confidence - scores.accuracy
    assert scores.overconfidence > 0.05
    assert abs(scores.overconfidence) <= scores.ece
    assert evaluate(PROBS, TARGETS, bins=1, intervals=False).ece == pytest.approx(abs(scores.overconfidence), abs=1e-12)


def test_the_table_has_every_metric_with_its_interval() -> None:
    scores = evaluate(PROBS, TARGETS, replicates=200)
    lines = str(scores).removesuffix(f"\n\n{BELOW}").splitlines()
    assert lines[0].strip() == "95 % interval"
    assert len(lines) == 2 + len(METRICS)
    for metric, line in zip(METRICS, lines[2:], strict=True):
        assert line.startswith(scores.title(metric.name))
        assert (" to " in line) == (metric.name != "kce_p_value")
    assert f"{scores.ece:.4f}  {scores.intervals['ece'].low:.4f} to {scores.intervals['ece'].high:.4f}" in str(scores)
    ends = {len(line.split(" to ")[0].rsplit("  ", 1)[0]) for line in lines if " to " in line}
    assert len(ends) == 1, "the values end in one column"


def test_the_table_says_why_an_interval_may_lie_below_its_estimate() -> None:
    scores = evaluate(PROBS, TARGETS, replicates=200)
    above = {name: Interval(0.0, 2.0 * getattr(scores, name) + 1.0) for name in scores.intervals}
    assert not str(dataclasses.replace(scores, intervals=above)).endswith(BELOW)
    assert str(dataclasses.replace(scores, intervals={**above, "ece": Interval(0.0, scores.ece / 2)})).endswith(f"\n\n{BELOW}")


def test_without_intervals_the_table_has_none() -> None:
    scores = evaluate(PROBS, TARGETS, intervals=False)
    assert " to " not in str(scores)
    assert scores.level is None
    assert not scores.intervals


def test_json_and_dict_hold_everything() -> None:
    scores = evaluate(PROBS, TARGETS, replicates=100, class_names=list("abcdef"))
    row = json.loads(scores.to_json())
    assert {name: row[name] for name in scores.values} == scores.values
    assert {name: tuple(ends) for name, ends in row["intervals"].items()} == scores.intervals
    assert [each["name"] for each in row["per_class"]] == list("abcdef")
    assert row["n"] == 400


def test_json_has_no_infinity_but_tells_of_it() -> None:
    scores = evaluate(torch.tensor([[1.0, 0.0], [0.4, 0.6]]), torch.tensor([1, 1]), intervals=False)
    assert scores.nll == math.inf

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    assert json.loads(scores.to_json(), parse_constant=refuse)["nll"] == "Infinity"


def test_the_frame_has_a_row_per_metric() -> None:
    scores = evaluate(PROBS, TARGETS, replicates=100)
    frame = scores.to_frame()
    assert list(frame.index) == [metric.name for metric in METRICS]
    assert frame.loc["ece", "low"] == scores.intervals["ece"].low
    assert frame["high"].isna().sum() == 1


def test_per_class() -> None:
    scores = evaluate(PROBS, TARGETS, intervals=False, class_names=["a", "b", "c", "d", "e", "<f>"])
    assert [each.share for each in scores.per_class] == pytest.approx(np.bincount(TARGETS, minlength=6) / 400)
    assert [each.probability for each in scores.per_class] == pytest.approx(PROBS.double().mean(0).tolist())
    assert np.mean([each.ece for each in scores.per_class]) == pytest.approx(scores.ece_classwise)
    assert scores.per_class[5].name == "<f>"


def test_scores_do_not_change() -> None:
    scores = evaluate(PROBS, TARGETS, intervals=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        scores.ece = 0.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bins": -1}, "Expected `bins` to be a positive integer, but got -1"),
        ({"level": 95}, "`level` to lie between 0 and 1, both excluded, but got 95"),
        ({"replicates": 0}, "`replicates` to be a positive integer, but got 0"),
        ({"replicates": 9}, "`replicates` to be at least 10, but got 9"),
        ({"target_accuracy": 1.0}, "`target_accuracy` to lie between 0 and 1, both excluded, but got 1.0"),
        ({"k": 0}, "`k` to be a positive integer, but got 0"),
        ({"kernel_width": 0}, "`kernel_width` to be a positive finite number, but got 0"),
        ({"class_names": ["a"]}, r"`class_names` to hold 6 names, one per column, but got \['a'\]"),
        ({"class_names": "abcdef"}, "`class_names` to hold 6 names"),
    ],
)
def test_bad_settings_are_quoted(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        evaluate(PROBS, TARGETS, **arguments)  # type: ignore[arg-type]
