"""The metrics against other libraries, where those are right, and against plain definitions."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from tests.metrics.simulated import classifier
from torch import Tensor

from calibayes import calibration, metrics

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # those of their imports
    import netcal.metrics as netcal
    import relplot
    from sklearn import metrics as sklearn_metrics
    from torchmetrics.functional.classification import multiclass_calibration_error

PROBS, TARGETS = classifier(3000, 0.6, seed=0, classes=6)
CALIBRATED = classifier(3000, 1.0, seed=1, classes=6)
BOTH = pytest.mark.parametrize(("probs", "targets"), [(PROBS, TARGETS), CALIBRATED], ids=["too sure", "calibrated"])


@BOTH
@pytest.mark.parametrize(("norm", "ours"), [("l1", metrics.ece), ("l2", metrics.rms_calibration_error), ("max", metrics.mce)])
def test_torchmetrics(probs: Tensor, targets: Tensor, norm: Any, ours: Any) -> None:
    theirs = multiclass_calibration_error(probs, targets, num_classes=6, n_bins=15, norm=norm)
    assert ours(probs, targets) == pytest.approx(float(theirs), abs=2e-6)  # it adds up in float32


def test_torchmetrics_puts_a_confidence_of_one_into_a_separate_bin_and_edges_into_the_bin_above() -> None:
    probs, targets = torch.tensor([[0.95, 0.05], [1.0, 0.0]]), torch.tensor([0, 1])
    theirs = float(multiclass_calibration_error(probs, targets, num_classes=2, n_bins=15))
    assert theirs == pytest.approx(0.525)
    assert metrics.ece(probs, targets) == pytest.approx(0.475)  # both lie in (14/15, 1]
    on_edge = torch.tensor([[0.6, 0.4], [0.55, 0.45]], dtype=torch.float64)  # 0.6 closes (8/15, 9/15], where 0.55 lies
    theirs = float(multiclass_calibration_error(on_edge, targets, num_classes=2, n_bins=15))
    assert theirs == pytest.approx((0.4 + 0.55) / 2)
    assert metrics.ece(on_edge, targets) == pytest.approx(abs(0.575 - 0.5))


@BOTH
def test_netcal(probs: Tensor, targets: Tensor) -> None:
    p, y = probs.numpy(), targets.numpy()
    assert metrics.ece(probs, targets) == pytest.approx(netcal.ECE(15).measure(p, y), abs=1e-12)
    assert metrics.mce(probs, targets) == pytest.approx(netcal.MCE(15).measure(p, y), abs=1e-12)
    assert metrics.ece_equal_mass(probs, targets) == pytest.approx(
        netcal.ECE(15, equal_intervals=False).measure(p, y), abs=2e-3
    )


@BOTH
def test_relplot(probs: Tensor, targets: Tensor) -> None:
    r, c = probs.amax(-1).numpy(), (probs.argmax(-1) == targets).double().numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = relplot.smECE(f=r, y=c)
    assert metrics.smooth_ece(probs, targets) == pytest.approx(theirs, abs=1e-3)  # its own tolerance


def test_smooth_ece_equals_its_definition() -> None:
    probs, targets = classifier(300, 0.7, seed=2)
    r, d = probs.amax(-1).numpy(), ((probs.argmax(-1) == targets).double() - probs.amax(-1)).numpy()
    sigma = metrics.smooth_ece(probs, targets)
    t = (np.arange(4000) + 0.5) / 4000
    images = np.concatenate([r + 2 * k for k in range(-3, 4)] + [-r + 2 * k for k in range(-3, 4)])
    kernel = np.exp(-((t[:, None] - images) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    smoothed = np.abs((kernel * np.tile(d, 14)).sum(1) / len(r)).mean()
    assert smoothed == pytest.approx(sigma, rel=1e-4)


def test_scikit_learn() -> None:
    p, y, w = PROBS.numpy(), TARGETS.numpy(), np.random.default_rng(0).random(len(PROBS))
    for k in (1, 2, 3):
        expected = sklearn_metrics.top_k_accuracy_score(y, p, k=k, sample_weight=w)
        assert metrics.top_k_accuracy(p, y, k, weights=w) == pytest.approx(expected, rel=1e-12)
    assert metrics.nll(p, y, weights=w) == pytest.approx(sklearn_metrics.log_loss(y, p, sample_weight=w), rel=1e-12)
    one = (y == 2).astype(int)
    twice = 2 * sklearn_metrics.brier_score_loss(one, p[:, 2], sample_weight=w)
    assert metrics.brier(p[:, 2], one, weights=w) == pytest.approx(twice, rel=1e-12)
    accuracy = sklearn_metrics.accuracy_score(y, p.argmax(1), sample_weight=w)
    assert metrics.accuracy(p, y, weights=w) == pytest.approx(accuracy, rel=1e-12)


@pytest.mark.parametrize("weights", [None, torch.linspace(0.1, 3, 3000, dtype=torch.float64)], ids=["plain", "weighted"])
def test_kernel_errors_equal_those_of_the_training_term(weights: Tensor | None) -> None:
    for ours, core in ((metrics.mmce, calibration.mmce), (metrics.wmmce, calibration.wmmce)):
        expected = float(core(PROBS, TARGETS, weights=weights, scores="hard"))
        assert ours(PROBS, TARGETS, weights=weights) == pytest.approx(expected, rel=1e-10)


def test_the_unbiased_kernel_error_equals_the_sum_over_pairs() -> None:
    probs, targets = PROBS[:400], TARGETS[:400]
    r, w = probs.amax(-1), torch.linspace(0.1, 2, 400, dtype=torch.float64)
    d = (probs.argmax(-1) == targets).double() - r
    kernel = torch.exp(-(r[:, None] - r).abs() / 0.4)
    for weight in (torch.ones_like(w), w):
        pairs = torch.outer(weight, weight).fill_diagonal_(0)
        expected = float((pairs * kernel * torch.outer(d, d)).sum() / pairs.sum())
        assert metrics.kce_squared(probs, targets, weights=weight) == pytest.approx(expected, rel=1e-10)


def test_classwise_ece_is_the_mean_over_classes_of_the_error_of_one_column() -> None:
    total = 0.0
    for k in range(6):
        column, seen = PROBS[:, k].numpy(), TARGETS.eq(k).numpy()
        bins = np.clip(np.ceil(column * 15).astype(int) - 1, 0, 14)
        total += sum(abs((seen - column)[bins == m].sum()) for m in range(15)) / len(column)
    assert metrics.ece_classwise(PROBS, TARGETS) == pytest.approx(total / 6, rel=1e-10)


def test_the_parts_of_the_brier_score_add_up_and_bins_narrow_enough_leave_no_rest() -> None:
    for bins in (5, 15, 100):
        parts = metrics.brier_decomposition(PROBS, TARGETS, bins)
        assert parts.reliability - parts.resolution + parts.uncertainty + parts.within_bins == pytest.approx(
            metrics.brier(PROBS, TARGETS), rel=1e-12
        )
    rounded = torch.tensor([[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]], dtype=torch.float64)[torch.arange(300) % 3]
    assert abs(metrics.brier_decomposition(rounded, torch.arange(300) % 2, 20).within_bins) < 1e-12
    frequency = np.bincount(TARGETS, minlength=6) / len(TARGETS)
    parts = metrics.brier_decomposition(np.tile(frequency, (len(TARGETS), 1)), TARGETS.numpy())
    assert parts.uncertainty == pytest.approx((frequency * (1 - frequency)).sum())
    assert parts.resolution == pytest.approx(0, abs=1e-12)
    assert parts.reliability == pytest.approx(0, abs=1e-12)


def naive_aurc(r: npt.NDArray[np.float64], wrong: npt.NDArray[np.float64]) -> float:
    order = np.argsort(-r, kind="stable")
    return float((np.cumsum(wrong[order]) / np.arange(1, len(r) + 1)).mean())


def test_aurc_is_the_mean_risk_and_ties_are_averaged_over_orders() -> None:
    r, wrong = PROBS.amax(-1).numpy(), (PROBS.argmax(-1) != TARGETS).double().numpy()
    assert metrics.aurc(PROBS, TARGETS) == pytest.approx(naive_aurc(r, wrong), rel=1e-10)
    tied = torch.tensor([[0.9, 0.1]] * 3 + [[0.7, 0.3]] * 4, dtype=torch.float64)
    targets = torch.tensor([0, 1, 0, 1, 0, 0, 1])
    generator = np.random.default_rng(0)
    orders = [generator.permutation(7) for _ in range(20000)]
    average = np.mean([naive_aurc(tied.amax(-1).numpy()[o], targets.numpy().astype(float)[o]) for o in orders])
    assert metrics.aurc(tied, targets) == pytest.approx(average, abs=3e-3)
    assert metrics.risk_coverage(tied, targets).coverage.tolist() == pytest.approx([3 / 7, 1.0])
    assert metrics.risk_coverage(tied, targets).aurc == metrics.aurc(tied, targets)


def test_the_risk_coverage_curve_by_its_definition() -> None:
    curve = metrics.risk_coverage(PROBS, TARGETS)
    r, wrong = PROBS.amax(-1), PROBS.argmax(-1) != TARGETS
    for index in (0, 10, 1000, 2999):
        answered = r >= curve.threshold[index]
        assert float(curve.coverage[index]) == pytest.approx(float(answered.double().mean()))
        assert float(curve.risk[index]) == pytest.approx(float(wrong[answered].double().mean()))
    reached = metrics.coverage_at_accuracy(PROBS, TARGETS, 0.8)
    assert reached == float(curve.coverage[curve.risk <= 0.2].max())
    assert metrics.coverage_at_accuracy(PROBS, TARGETS, 0.9999) <= reached
    assert metrics.coverage_at_accuracy(torch.tensor([[0.6, 0.4]]), torch.tensor([1]), 0.5) == 0.0


def test_known_true_errors() -> None:
    r = torch.rand(400_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 0.4 + 0.55
    generator = torch.Generator().manual_seed(1)
    correct = torch.rand(len(r), generator=generator, dtype=torch.float64) < r - 0.05
    probs, targets = torch.stack((r, 1 - r), -1), (~correct).long()
    scores = metrics.evaluate(probs, targets, intervals=False)
    for name in ("ece", "ece_equal_mass", "rms_calibration_error", "smooth_ece", "overconfidence"):
        assert getattr(scores, name) == pytest.approx(0.05, abs=4e-3), name
    assert scores.ece_squared_debiased == pytest.approx(0.0025, abs=2e-4)
    # E (c - r)(c' - r') k = 0.05² E k, and E exp(-|r - r'|/γ) over a uniform range of 0.4 = γ: 2/e.
    assert scores.kce_squared == pytest.approx(0.0025 * 2 / math.e, rel=0.06)
    assert scores.kce_p_value == 0.001
