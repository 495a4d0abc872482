"""All scores together."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from calibayes.errors import InvalidArgumentError
from calibayes.metrics import Scores, accuracy, brier, ece, evaluate, nll

GENERATOR = torch.Generator().manual_seed(0)
PROBS = (3 * torch.randn(400, 6, generator=GENERATOR)).softmax(-1)
TARGETS = torch.where(
    torch.rand(400, generator=GENERATOR) < 0.4, PROBS.argmax(-1), torch.randint(6, (400,), generator=GENERATOR)
)


def test_every_field_is_the_function_of_its_name() -> None:
    scores = evaluate(PROBS, TARGETS, bins=10)
    assert scores == Scores(
        n=400,
        bins=10,
        accuracy=accuracy(PROBS, TARGETS),
        nll=nll(PROBS, TARGETS),
        brier=brier(PROBS, TARGETS),
        ece=ece(PROBS, TARGETS, bins=10),
        confidence=PROBS.amax(-1).double().mean().item(),
    )


def test_overconfidence_is_confidence_minus_accuracy_and_bounds_the_ece_from_below() -> None:
    scores = evaluate(PROBS, TARGETS)
    assert scores.overconfidence == scores.confidence - scores.accuracy
    assert scores.overconfidence > 0.05
    assert abs(scores.overconfidence) <= scores.ece
    assert evaluate(PROBS, TARGETS, bins=1).ece == pytest.approx(abs(scores.overconfidence), abs=1e-12)


def test_the_table_is_aligned_and_complete() -> None:
    scores = evaluate(PROBS, TARGETS)
    lines = str(scores).splitlines()
    assert [line.split()[0] for line in lines] == [
        "examples", "accuracy", "NLL", "Brier", "ECE", "confidence", "overconfidence",
    ]  # fmt: skip
    ends = {len(name_and_value.rstrip()) for name_and_value in (line[:23] for line in lines)}
    assert ends == {23}, "the values end in one column"
    assert f"{scores.ece:.4f}" in lines[4]
    assert "15 bins" in lines[4]


def test_to_dict_is_json() -> None:
    scores = evaluate(PROBS, TARGETS)
    row = json.loads(json.dumps(scores.to_dict()))
    overconfidence = row.pop("overconfidence")
    assert Scores(**row) == scores
    assert overconfidence == scores.overconfidence


def test_scores_do_not_change() -> None:
    scores = evaluate(PROBS, TARGETS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        scores.ece = 0.0  # type: ignore[misc]


def test_bad_bins() -> None:
    with pytest.raises(InvalidArgumentError, match="Expected `bins` to be a positive integer, but got -1"):
        evaluate(PROBS, TARGETS, bins=-1)
