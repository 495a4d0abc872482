"""All that is asked of predictions at once: the same as each part by itself, and honest about how sets turned out."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor

from calibayes.acting import (
    CertifyRequest,
    ClassThresholds,
    CostTable,
    CostThreshold,
    GuaranteeRequest,
    PredictionSets,
    Threshold,
    calibrate_guarantees,
    certify_class_thresholds,
    certify_cost,
    decide_by_cost,
)
from calibayes.acting.guarantees import certify_pairs, decisions_by_cost
from calibayes.errors import InvalidArgumentError

COSTS = CostTable(("send home", "treat", "watch"), ((0.0, 10.0, 5.0), (2.0, 0.0, 2.0), (1.0, 1.0, 1.0)))


def drawn(n: int, seed: int = 0, sharpness: float = 2.0) -> tuple[Tensor, Tensor]:
    """Calibrated probabilities of three classes."""
    generator = torch.Generator().manual_seed(seed)
    probs = (sharpness * torch.randn(n, 3, generator=generator, dtype=torch.float64)).softmax(-1)
    return probs, torch.multinomial(probs, 1, generator=generator)[:, 0]


def test_each_part_is_what_it_is_by_itself() -> None:
    probs, labels = drawn(800)
    new, _ = drawn(50, seed=1)
    found = calibrate_guarantees(GuaranteeRequest(0.9, "aps", True, CertifyRequest("accuracy", 0.85, 0.8)), probs, labels)
    assert found.sets is not None
    assert torch.equal(found.sets.predict(new), PredictionSets.fit(probs, labels, 0.9, "aps", True).predict(new))
    assert found.threshold == Threshold.fit(probs, labels, 0.85, 0.8)
    assert found.threshold.certified
    assert torch.equal(found.answers(new), found.threshold.answers(new.amax(-1)))  # type: ignore[arg-type]
    precise = calibrate_guarantees(GuaranteeRequest(certify=CertifyRequest("precision", 0.8)), probs, labels)
    assert precise.threshold == certify_class_thresholds(probs, labels, 0.8)
    assert isinstance(precise.threshold, ClassThresholds)
    assert torch.equal(precise.answers(new), precise.threshold.answers(new))  # type: ignore[arg-type]
    cheap = calibrate_guarantees(GuaranteeRequest(certify=CertifyRequest("cost", 0.8), costs=COSTS), probs, labels, seed=3)
    expected = certify_cost(probs, labels, COSTS.costs, 0.8, seed=3)
    assert cheap.threshold == expected
    assert expected.certified
    assert torch.equal(cheap.answers(new), expected.answers(decide_by_cost(new, COSTS.costs).expected_cost))  # type: ignore[arg-type]


def test_the_coverage_that_is_shown_is_of_rows_that_did_not_calibrate() -> None:
    """On the n rows that calibrated them, sets cover at least ceil((n + 1) level) of these: always more than the level."""
    shown, own = [], []
    for seed in range(60):
        probs, labels = drawn(40, seed)
        found = calibrate_guarantees(GuaranteeRequest(sets=0.8), probs, labels, seed=seed)
        assert found.sets is not None
        assert found.measured is not None
        assert sum(found.measured.size_counts) == 40
        shown.append(found.measured.coverage)
        own.append(float(found.sets.predict(probs).gather(1, labels[:, None]).double().mean()))
    assert min(own) >= 0.8
    # A half of 20 rows takes its 17th smallest score, so the expected coverage of the other half is at least 17/21.
    mean = sum(shown) / 60
    assert 17 / 21 - 0.03 < mean < 0.9
    assert min(shown) < 0.8


def test_a_margin_makes_sets_larger_and_answers_fewer() -> None:
    probs, labels = drawn(600)
    for certify, costs in (("accuracy=0.85", None), ("precision=0.8", None), ("cost=0.8", COSTS)):
        found = calibrate_guarantees(GuaranteeRequest(0.9, certify=CertifyRequest.parsed(certify), costs=costs), probs, labels)
        wide = found.widened(0.01)
        assert found.sets is not None
        assert wide.sets is not None
        before, after = found.sets.predict(probs), wide.sets.predict(probs)
        assert bool((before <= after).all())
        assert after.sum() > before.sum()
        fewer, more = wide.answers(probs), found.answers(probs)
        assert fewer is not None
        assert more is not None
        assert bool((fewer <= more).all())
        assert fewer.sum() < more.sum()


def test_a_margin_leaves_alone_what_decides_everything() -> None:
    probs, labels = drawn(300)
    found = calibrate_guarantees(GuaranteeRequest(certify=CertifyRequest("accuracy", 0.1)), probs, labels)
    assert isinstance(found.threshold, Threshold)
    assert found.threshold.value == 0
    assert found.widened(0.01).threshold == found.threshold


def test_tied_predictions_that_differ_in_the_last_digit_stay_covered() -> None:
    """All rows have one of two predictions: what is computed again may not fall on the other side of a threshold."""
    probs = torch.tensor([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3]]).repeat(100, 1)
    labels = torch.tensor([1, 2]).repeat(100)
    found = calibrate_guarantees(GuaranteeRequest(sets=0.9), probs.float(), labels)
    noisy = probs.double() + torch.tensor([1e-7, -1e-7, 0.0])
    assert found.sets is not None
    assert not bool(found.sets.predict(noisy).gather(1, labels[:, None]).all())
    wide = found.widened(1e-6).sets
    assert wide is not None
    assert bool(wide.predict(noisy).gather(1, labels[:, None]).all())


def test_everything_is_there_in_plain_values() -> None:
    probs, labels = drawn(500)
    request = GuaranteeRequest(0.9, certify=CertifyRequest("precision", 0.8))
    found = calibrate_guarantees(request, probs, labels)
    told: dict[str, Any] = json.loads(json.dumps(found.to_dict(["a", "b", "c"])))
    assert told["rows"] == 500
    measured = told["sets"]["measured"]
    assert measured["coverage"]["low"] < measured["coverage"]["value"] < measured["coverage"]["high"]
    assert sum(measured["size_counts"]) == 500
    together, *classes = told["threshold"]["statements"]
    assert together.endswith("so that all 3 hold together with certainty 90 %.")
    assert [text.partition(":")[0] for text in classes] == ["a", "b", "c"]
    assert told["threshold"]["answered"] == int(found.answers(probs).sum())  # type: ignore[union-attr]
    assert found.statements(["a", "b", "c"]) == [told["sets"]["statement"], *told["threshold"]["statements"]]


def test_too_few_rows_are_a_note() -> None:
    probs, labels = drawn(5)
    found = calibrate_guarantees(GuaranteeRequest(sets=0.9), probs, labels)
    assert found.sets is not None
    assert bool(found.sets.predict(probs).all())
    (note,) = found.notes
    assert "needs at least 9" in note


def test_pairs_certify_an_accuracy_alone() -> None:
    confidence = torch.linspace(0.5, 1, 1000)
    right = confidence > 0.7
    found = certify_pairs(GuaranteeRequest(certify=CertifyRequest("accuracy", 0.95)), confidence, right)
    assert isinstance(found.threshold, Threshold)
    assert found.threshold.certified
    with pytest.raises(InvalidArgumentError, match=r"need the probabilities of all classes.*Leave --sets out"):
        certify_pairs(GuaranteeRequest(sets=0.9), confidence, right)
    with pytest.raises(InvalidArgumentError, match=r"To certify a precision.*accuracy=…"):
        certify_pairs(GuaranteeRequest(certify=CertifyRequest("precision", 0.9)), confidence, right)


def test_decisions_by_cost_have_names() -> None:
    probs = torch.tensor([[0.98, 0.01, 0.01], [0.0, 1.0, 0.0], [0.34, 0.33, 0.33]])
    assert decisions_by_cost(probs, COSTS).named == ["send home", "treat", "watch"]
    none = calibrate_guarantees(GuaranteeRequest(certify=CertifyRequest("cost", 0.01), costs=COSTS), *drawn(20))
    assert isinstance(none.threshold, CostThreshold)
    assert none.widened(1e-6).threshold == none.threshold


@pytest.mark.parametrize("text", ["accuracy=0.95", " precision = 0.9 , certainty=0.99", "cost=-1.5"])
def test_what_is_typed_is_read_and_written_the_same(text: str) -> None:
    request = CertifyRequest.parsed(text)
    assert CertifyRequest.parsed(str(request)) == request


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.95", r"one of accuracy, precision, cost, '=' and a number, but got '0.95'. Write for example accuracy=0.95"),
        ("acuracy=0.9", "but got 'acuracy=0.9'"),
        ("accuracy=high", "Expected a number after 'accuracy=', but got 'high'"),
        ("accuracy=0.9,accuracy=0.8", "Expected 'accuracy' once"),
        ("accuracy=0.9,precision=0.8", "one of accuracy, precision, cost, but got"),
        ("certainty=0.9", "one of accuracy, precision, cost, but got 'certainty=0.9'"),
        ("accuracy=1", "`accuracy`"),
        ("accuracy=95", r"`accuracy` to lie between 0 and 1, both excluded, but got 95\.0\. For 95 %, pass 0\.95\."),
        ("cost=nan", "`cost` to be a finite number"),
        ("accuracy=0.9,certainty=1.5", r"`certainty`.* but got 1\.5\.$"),
    ],
)
def test_what_cannot_be_certified_is_named(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        CertifyRequest.parsed(text)


def test_requests_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="`sets`"):
        GuaranteeRequest(sets=1.0)
    with pytest.raises(InvalidArgumentError, match=r"Unknown score of sets 'lacs'. Did you mean 'lac'\?"):
        GuaranteeRequest(sets=0.9, score="lacs")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="Expected --costs"):
        GuaranteeRequest(certify=CertifyRequest("cost", 1.0))
    with pytest.raises(InvalidArgumentError, match="Certify their mean cost"):
        GuaranteeRequest(certify=CertifyRequest("accuracy", 0.9), costs=COSTS)
    with pytest.raises(InvalidArgumentError, match="Leave the row 'abstain' out"):
        GuaranteeRequest(certify=CertifyRequest("cost", 1.0), costs=CostTable(("a",), ((1.0, 0.0),), 0.5))
