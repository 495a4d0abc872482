"""WMMCE, MMCE, DECE and SBECE against their equations written out one pair of examples at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.calibration.measured import MEASURES, batch
from torch import Tensor

from calibayes.calibration import DECE, MMCE, SBECE, WMMCE, confidence, correctness, dece, mmce, sbece, wmmce
from calibayes.metrics import ece


def hard_scores(probs: Tensor, targets: Tensor) -> tuple[list[float], list[int]]:
    rows = probs.tolist()
    r = [max(row) for row in rows]
    return r, [int(row.index(best) == target) for row, best, target in zip(rows, r, targets.tolist(), strict=True)]


def equation_weighted(r: list[float], c: list[int], width: float) -> float:
    """Eq. (weighted): three double sums; a sum over an empty group is left out."""
    n, n_c = len(r), sum(c)
    total = 0.0
    for i in range(n):
        for j in range(n):
            kappa = math.exp(-abs(r[i] - r[j]) / width)
            if c[i] == c[j] == 0:
                total += r[i] * r[j] * kappa / ((n - n_c) * (n - n_c))
            elif c[i] == c[j] == 1:
                total += (1 - r[i]) * (1 - r[j]) * kappa / n_c**2
            elif c[i] == 1 and c[j] == 0:
                total -= 2 * (1 - r[i]) * r[j] * kappa / ((n - n_c) * n_c)
    return math.sqrt(total)


def form(u: list[float], r: list[float], width: float) -> float:
    n = range(len(r))
    return math.sqrt(math.fsum(u[i] * u[j] * math.exp(-abs(r[i] - r[j]) / width) for i in n for j in n))


def soft_binning(r: list[float], c: list[float], bins: int, temperature: float) -> float:
    """Bohdal et al.: membership of M bins with cut points 1/M … (M−1)/M, then the ECE of soft counts."""
    biases = [0.0]
    for cut in range(1, bins):
        biases.append(biases[-1] - cut / bins)
    count, right, sure = [0.0] * bins, [0.0] * bins, [0.0] * bins
    for r_i, c_i in zip(r, c, strict=True):
        heights = [((m + 1) * r_i + biases[m]) / temperature for m in range(bins)]
        top = max(heights)
        powers = [math.exp(height - top) for height in heights]
        for m in range(bins):
            member = powers[m] / math.fsum(powers)
            count[m] += member
            right[m] += member * c_i
            sure[m] += member * r_i
    return math.fsum(count[m] / len(r) * abs(right[m] / count[m] - sure[m] / count[m]) for m in range(bins) if count[m] > 0)


def soft_binned(r: list[float], c: list[float], bins: int, temperature: float, norm: float) -> float:
    """Karandikar et al.: membership by the distance to M bin centres, then the p-norm over bins of acc − conf."""
    members = []
    for r_i in r:
        heights = [-((r_i - (m + 0.5) / bins) ** 2) / temperature for m in range(bins)]
        powers = [math.exp(height - max(heights)) for height in heights]
        members.append([power / math.fsum(powers) for power in powers])
    total = 0.0
    for m in range(bins):
        size = math.fsum(row[m] for row in members)
        if size > 0:
            right = math.fsum(row[m] * c_i for row, c_i in zip(members, c, strict=True)) / size
            sure = math.fsum(row[m] * r_i for row, r_i in zip(members, r, strict=True)) / size
            total += size / len(r) * abs(right - sure) ** norm
    return float(total ** (1 / norm))


@pytest.mark.parametrize("width", [0.001, 0.05, 0.4, 10.0])
@pytest.mark.parametrize("n", [2, 9, 40])
def test_wmmce_is_the_papers_equation(n: int, width: float) -> None:
    for _ in range(5):
        probs, targets = batch(n, 4)
        expected = equation_weighted(*hard_scores(probs, targets), width)
        result = float(wmmce(probs, targets, scores="hard", kernel_width=width))
        assert result == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("right", [True, False])
def test_one_group_alone(right: bool) -> None:
    probs, _ = batch(12, 4)
    targets = probs.argmax(-1) if right else probs.argmin(-1)
    expected = equation_weighted(*hard_scores(probs, targets), 0.4)
    assert float(wmmce(probs, targets, scores="hard")) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("width", [0.05, 0.4])
def test_soft_wmmce_is_the_same_form_with_soft_membership(width: float) -> None:
    probs, targets = batch(30, 5)
    r, c = confidence(probs, 0.02).tolist(), correctness(probs, targets, 0.05).tolist()
    n_c = math.fsum(c)
    assert 1 < n_c < 29
    u = [c_i * (1 - r_i) / n_c - (1 - c_i) * r_i / (30 - n_c) for r_i, c_i in zip(r, c, strict=True)]
    result = float(wmmce(probs, targets, kernel_width=width, tau_r=0.02, tau_c=0.05))
    assert result == pytest.approx(form(u, r, width), rel=1e-10)


@pytest.mark.parametrize("scores", ["soft", "hard"])
def test_reference_normalisation_divides_twice(scores: str) -> None:
    probs, targets = batch(25, 4)
    soft = scores == "soft"
    r = confidence(probs, 1e-3 if soft else None).tolist()
    c = correctness(probs, targets, 1e-2 if soft else None).tolist()
    n_c = math.fsum(c)
    u = [c_i * (1 - r_i) / n_c**2 - (1 - c_i) * r_i / (25 - n_c) ** 2 for r_i, c_i in zip(r, c, strict=True)]
    result = float(WMMCE(mode=scores, normalization="reference")(probs, targets))  # type: ignore[arg-type]
    assert result == pytest.approx(form(u, r, 0.4), rel=1e-10)


@pytest.mark.parametrize("width", [0.01, 0.4])
@pytest.mark.parametrize("soft", [True, False])
def test_mmce(soft: bool, width: float) -> None:
    probs, targets = batch(30, 3)
    r = confidence(probs, 0.02 if soft else None).tolist()
    c = correctness(probs, targets, 0.05 if soft else None).tolist()
    u = [(c_i - r_i) / 30 for r_i, c_i in zip(r, c, strict=True)]
    result = float(mmce(probs, targets, scores="soft" if soft else "hard", kernel_width=width, tau_r=0.02, tau_c=0.05))
    assert result == pytest.approx(form(u, r, width), rel=1e-10)


def test_a_nearly_empty_soft_group_stays_bounded() -> None:
    # n_c = 1e-8 in all: a division by it would make the right group count as much as the nine wrong ones.
    r = torch.full((10,), 0.3, dtype=torch.float64)
    c = torch.full((10,), 1e-9, dtype=torch.float64, requires_grad=True)
    value = WMMCE().value(r, c)
    value.backward()
    assert float(value.detach()) == pytest.approx(0.3, rel=1e-6)
    assert c.grad is not None
    assert float(c.grad.abs().max()) < 1


@pytest.mark.parametrize("temperature", [0.001, 0.01, 0.2])
@pytest.mark.parametrize("bins", [1, 4, 15])
def test_dece_is_soft_binning(bins: int, temperature: float) -> None:
    probs, targets = batch(50, 4)
    r, c = hard_scores(probs, targets)
    result = float(dece(probs, targets, scores="hard", bins=bins, temperature=temperature))
    assert result == pytest.approx(soft_binning(r, [float(c_i) for c_i in c], bins, temperature), rel=1e-9)
    r, soft = confidence(probs, 1e-3).tolist(), correctness(probs, targets, 1e-2).tolist()
    result = float(dece(probs, targets, bins=bins, temperature=temperature))
    assert result == pytest.approx(soft_binning(r, soft, bins, temperature), rel=1e-9)


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("temperature", [0.0005, 0.01, 0.2])
@pytest.mark.parametrize("bins", [1, 4, 15])
def test_sbece_is_the_norm_over_soft_bins(bins: int, temperature: float, norm: float) -> None:
    probs, targets = batch(50, 4)
    options: dict[str, Any] = {"bins": bins, "temperature": temperature, "norm": norm}
    r, c = hard_scores(probs, targets)
    expected = soft_binned(r, [float(c_i) for c_i in c], **options)
    assert float(sbece(probs, targets, scores="hard", **options)) == pytest.approx(expected, rel=1e-9)
    r, soft = confidence(probs, 1e-3).tolist(), correctness(probs, targets, 1e-2).tolist()
    assert float(sbece(probs, targets, **options)) == pytest.approx(soft_binned(r, soft, **options), rel=1e-9)


def test_sbece_is_zero_with_a_zero_gradient_where_confidence_is_correctness() -> None:
    r = torch.tensor([0.0, 1.0, 1.0], dtype=torch.float64, requires_grad=True)
    value = SBECE().value(r, r.detach().clone())
    (gradient,) = torch.autograd.grad(value, r)
    assert float(value.detach()) == 0
    assert not gradient.any()


@pytest.mark.parametrize("bins", [1, 2, 5, 10, 15, 30])
def test_dece_tends_to_the_ece(bins: int) -> None:
    probs, targets = batch(500, 4)
    off_edges = (probs.amax(-1) * bins - (probs.amax(-1) * bins).round()).abs() > 0.01
    probs, targets = probs[off_edges], targets[off_edges]
    assert len(probs) > 400
    expected = ece(probs, targets, bins=bins)
    assert float(dece(probs, targets, scores="hard", bins=bins, temperature=1e-6)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("scores", ["soft", "hard"])
@pytest.mark.parametrize("measure", MEASURES)
def test_gradients_agree_with_finite_differences(measure: Callable[..., Tensor], scores: str) -> None:
    probs, targets = batch(8, 3)
    logits = probs.log().requires_grad_()
    options: dict[str, Any] = {"scores": scores, "tau_r": 0.05, "tau_c": 0.1}
    if measure is dece:
        options["temperature"] = 0.5
    assert torch.autograd.gradcheck(lambda logits: measure(logits.softmax(-1), targets, **options), logits, atol=1e-6)


@pytest.mark.parametrize("scores", ["soft", "hard"])
@pytest.mark.parametrize("measure", MEASURES)
def test_leading_axes_are_independent_batches(measure: Callable[..., Tensor], scores: str) -> None:
    probs, targets = batch(20, 4, 2, 3)
    values = measure(probs, targets, scores=scores)
    assert values.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            assert float(values[i, j]) == pytest.approx(float(measure(probs[i, j], targets, scores=scores)), rel=1e-12)
    weights = torch.rand(2, 3, 20)
    weighted = measure(probs, targets.expand(2, 3, 20), scores=scores, weights=weights)
    alone = measure(probs[1, 2], targets, scores=scores, weights=weights[1, 2])
    assert float(weighted[1, 2]) == pytest.approx(float(alone), rel=1e-12)


@pytest.mark.parametrize("scores", ["soft", "hard"])
@pytest.mark.parametrize("measure", MEASURES)
def test_order_of_examples_does_not_matter(measure: Callable[..., Tensor], scores: str) -> None:
    probs, targets = batch(40, 4)
    order = torch.randperm(40)
    expected = float(measure(probs, targets, scores=scores))
    assert float(measure(probs[order], targets[order], scores=scores)) == pytest.approx(expected, rel=1e-12)


def test_functions_and_classes_agree() -> None:
    probs, targets = batch(20, 4)
    kernel: dict[str, Any] = {"kernel_width": 0.2, "tau_r": 0.01, "tau_c": 0.03, "normalization": "reference"}
    assert torch.equal(wmmce(probs, targets, **kernel), WMMCE(**kernel)(probs, targets))
    assert torch.equal(mmce(probs, targets, **kernel), MMCE(**kernel)(probs, targets))
    binned: dict[str, Any] = {"bins": 7, "temperature": 0.05, "tau_r": 0.01, "tau_c": 0.03}
    assert torch.equal(dece(probs, targets, **binned), DECE(**binned)(probs, targets))
    assert torch.equal(sbece(probs, targets, norm=3.0, **binned), SBECE(norm=3.0, **binned)(probs, targets))
    for measure in (WMMCE(), MMCE(mode="hard"), DECE(), SBECE()):
        assert torch.equal(measure(probs, targets), measure.value(*measure.scores(probs, targets)))
