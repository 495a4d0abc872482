"""What the measures are worth on a calibrated classifier: known values for a large number of examples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from calibayes.calibration import dece, mmce, wmmce


def simulated(r: Tensor) -> tuple[Tensor, Tensor]:
    """Two classes at confidence ``r`` (of at least ½), right with probability ``r``."""
    targets = (torch.rand_like(r) >= r).long()
    return torch.stack([r, 1 - r], -1), targets


def population_wmmce(low: float, high: float, width: float, points: int = 1500) -> float:
    """‖E[r(1−r)φ(r)]‖·|1/acc − 1/(1−acc)| for confidences uniform on [low, high], by the midpoint rule."""
    r = low + (high - low) * (np.arange(points) + 0.5) / points
    g = r * (1 - r) / points
    norm = np.sqrt(g @ np.exp(-np.abs(r[:, None] - r) / width) @ g)
    accuracy = (low + high) / 2
    return float(norm * abs(1 / accuracy - 1 / (1 - accuracy)))


@pytest.mark.parametrize(("low", "high"), [(0.5, 1.0), (0.8, 0.95)])
@pytest.mark.parametrize("width", [0.4, 0.02])
def test_a_calibrated_classifier(low: float, high: float, width: float) -> None:
    r = low + (high - low) * torch.rand(200_000, dtype=torch.float64)
    probs, targets = simulated(r)
    expected = population_wmmce(low, high, width)
    assert float(wmmce(probs, targets, scores="hard", kernel_width=width)) == pytest.approx(expected, rel=0.03)
    assert expected > 0.1
    assert float(mmce(probs, targets, scores="hard", kernel_width=width)) < 0.005
    assert float(dece(probs, targets, scores="hard")) < 0.01


@pytest.mark.parametrize("n", [50, 800])
def test_mmce_of_a_calibrated_classifier_falls_as_one_over_the_root_of_n(n: int) -> None:
    # Independent residuals of mean zero: E[MMCE²] = E[(c−r)²]/n = E[r(1−r)]/n, for every kernel of diagonal 1.
    r = 0.5 + 0.5 * torch.rand(600, n, dtype=torch.float64)
    probs, targets = simulated(r)
    mean = float(mmce(probs, targets, scores="hard").square().mean())
    assert mean * n == pytest.approx(1 / 2 + 1 / 4 - 7 / 12, rel=0.12)


@pytest.mark.parametrize("width", [0.001, 0.4, 10.0])
@pytest.mark.parametrize("right", [1, 7, 35, 49])
@pytest.mark.parametrize("confidence", [0.5, 0.55, 0.8, 0.999])
def test_constant_confidence_hides_the_accuracy(confidence: float, right: int, width: float) -> None:
    r = torch.full((50,), confidence, dtype=torch.float64)
    targets = (torch.arange(50) >= right).long()
    probs = torch.stack([r, 1 - r], -1)
    assert float(wmmce(probs, targets, scores="hard", kernel_width=width)) == pytest.approx(abs(1 - 2 * confidence), abs=1e-12)
    # MMCE sees it.
    assert float(mmce(probs, targets, scores="hard", kernel_width=width)) == pytest.approx(
        abs(right / 50 - confidence), abs=1e-12
    )


@pytest.mark.parametrize(("right", "sign"), [(40, 1.0), (10, -1.0)])
def test_wmmce_pulls_a_constant_confidence_towards_one_half(right: int, sign: float) -> None:
    # Below one half of 4 classes too, where a decision can be made at 0.4: |1 − 2r| has slope ±2 whatever the accuracy.
    for confidence, slope in ((0.8, 2.0), (0.4, -2.0)):
        r = torch.full((50,), confidence, dtype=torch.float64, requires_grad=True)
        rest = ((1 - r) / 3).unsqueeze(-1).expand(50, 3)
        probs = torch.cat([r.unsqueeze(-1), rest], -1)
        targets = (torch.arange(50) >= right).long()
        wmmce(probs, targets, scores="hard").backward()
        assert r.grad is not None
        assert float(r.grad.sum()) == pytest.approx(slope, rel=1e-9)
    # MMCE pulls towards the accuracy.
    r = torch.full((50,), 0.5, dtype=torch.float64, requires_grad=True)
    mmce(torch.stack([r, 1 - r], -1), (torch.arange(50) >= right).long(), scores="hard").backward()
    assert r.grad is not None
    assert float(r.grad.sum()) == pytest.approx(-sign, rel=1e-9)
