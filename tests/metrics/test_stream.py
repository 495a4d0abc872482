"""Metrics batch by batch against those of all data at once."""

from __future__ import annotations

import pytest
import torch
from tests.metrics.simulated import classifier
from torch import Tensor

from calibayes.errors import DataError, InvalidArgumentError, InvalidProbabilitiesError
from calibayes.metrics import Stream, evaluate, reliability_bins

EXACT = (
    "accuracy", "top_k", "confidence", "overconfidence", "nll", "brier", "brier_reliability", "brier_resolution",
    "brier_uncertainty", "ece", "ece_classwise", "mce", "rms_calibration_error", "ece_squared_debiased",
)  # fmt: skip
PROBS, TARGETS = classifier(20_000, 0.7, seed=0, classes=12)
WEIGHTS = torch.rand(20_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def streamed(size: int, weights: Tensor | None = None, dtype: torch.dtype = torch.float64) -> Stream:
    stream = Stream(seed=7, target_accuracy=0.6)
    for start in range(0, len(PROBS), size):
        part = slice(start, start + size)
        stream.update(PROBS[part].to(dtype), TARGETS[part], weights=None if weights is None else weights[part])
    return stream


@pytest.mark.parametrize("size", [20_000, 6_001, 97])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_a_stream_equals_the_whole(size: int, weights: Tensor | None) -> None:
    whole = evaluate(PROBS, TARGETS, weights=weights, intervals=False, target_accuracy=0.6)
    stream = streamed(size, weights)
    scores = stream.scores(intervals=False)
    assert scores.n == whole.n
    for name in EXACT:
        assert getattr(scores, name) == pytest.approx(getattr(whole, name), rel=1e-10, abs=1e-14), name
    for name in ("ece_equal_mass", "smooth_ece", "mmce", "wmmce", "kce_squared", "aurc", "coverage_at_target"):
        assert getattr(scores, name) == pytest.approx(getattr(whole, name), rel=0.02, abs=2e-5), name
    assert torch.equal(stream.reliability_bins().count, reliability_bins(PROBS, TARGETS).count)
    assert stream.risk_coverage().aurc == scores.aurc


def test_float32_confidences_on_edges_fall_where_they_do_at_once() -> None:
    probs = torch.tensor([[0.2, 0.2, 0.2, 0.2, 0.2], [0.6, 0.1, 0.1, 0.1, 0.1], [1.0, 0, 0, 0, 0]])
    stream = Stream()
    stream.update(probs, torch.tensor([0, 1, 2]))
    assert stream.scores(intervals=False).ece == pytest.approx(evaluate(probs, torch.tensor([0, 1, 2])).ece, rel=1e-12)


def test_intervals_do_not_depend_on_the_batches_and_agree_with_those_of_the_whole() -> None:
    one, many = streamed(20_000).scores(replicates=300), streamed(777).scores(replicates=300)
    whole = evaluate(PROBS, TARGETS, replicates=300)
    for name, (low, high) in one.intervals.items():
        if name not in ("mce", "coverage_at_target"):  # they move in steps
            assert tuple(many.intervals[name]) == pytest.approx((low, high), rel=1e-6, abs=1e-7), name
            width = whole.intervals[name].high - whole.intervals[name].low
            assert high - low == pytest.approx(width, rel=0.3, abs=2e-3), name


def test_memory_does_not_grow_with_the_examples() -> None:
    stream = streamed(5_000)
    before = sum(value.numel() for value in vars(stream._tally).values() if isinstance(value, Tensor))
    for _ in range(3):
        stream.update(PROBS, TARGETS)
    after = sum(value.numel() for value in vars(stream._tally).values() if isinstance(value, Tensor))
    assert after == before
    assert before * 8 < 120e6
    assert stream.scores(intervals=False).n == 80_000


def test_invalid_use_is_rejected() -> None:
    stream = Stream(class_names=["a", "b", "c"])
    with pytest.raises(DataError, match="call `update` with at least one batch"):
        stream.scores()
    with pytest.raises(InvalidArgumentError, match="12 names"):
        stream.update(PROBS, TARGETS)
    stream = Stream()
    stream.update(PROBS, TARGETS)
    with pytest.raises(InvalidProbabilitiesError, match="12 classes, as in the first batch, but got 2"):
        stream.update(torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
    assert stream.scores(intervals=False).n == 20_000, "a batch that was refused leaves no trace"
