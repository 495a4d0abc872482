"""Quadratic scaling: known parabolas, the optimum by autograd, the reference's numbers, mirror images."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from calibayes.errors import InvalidProbabilitiesError
from calibayes.posthoc import QuadraticScaling, TemperatureScaling


def simulated(
    n: int, curvature: float = 0.1, slope: float = 0.7, intercept: float = -0.5, seed: int = 1
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    odds = 3 * torch.randn(n, generator=generator).double()
    truth = (curvature * odds**2 + slope * odds + intercept).sigmoid()
    return odds, torch.bernoulli(truth, generator=generator).long()


@pytest.mark.parametrize(("n", "strength"), [(20, 1.0), (3000, 1.0), (3000, 1e-3)])
def test_the_gradient_is_zero_at_the_optimum(n: int, strength: float) -> None:
    odds, targets = simulated(n)
    scaling = QuadraticScaling(strength=strength).fit(odds, targets, logits=True)
    softened = (torch.stack((torch.zeros_like(odds), odds), -1) / scaling.temperature).softmax(-1)
    smoothed = (n * softened + 0.5) / (n + 1)
    z = smoothed[:, 1].log() - smoothed[:, 0].log()
    parameters = torch.tensor([scaling.curvature, scaling.slope, scaling.intercept], dtype=torch.float64, requires_grad=True)
    scores = parameters[0] * z.square() + parameters[1] * z + parameters[2]
    penalty = parameters[0].square() + (parameters[1] - 1).square() + parameters[2].square()
    loss = binary_cross_entropy_with_logits(scores, targets.double()) + strength * 2 / n * penalty
    (gradient,) = torch.autograd.grad(loss, parameters)
    assert gradient.abs().amax() < 1e-8


def test_without_penalty_it_is_nearly_the_reference() -> None:
    """BinaryLogisticCalibrator(type="quadratic") of probmetrics 1.3.0, which neither smooths nor penalises."""
    odds, targets = simulated(3000)
    theirs = torch.tensor([0.1848, 0.1910, 0.2036, 0.1939, 0.3575, 0.2106, 0.1727, 0.1939], dtype=torch.float64)
    ours = QuadraticScaling(strength=1e-9).fit(odds, targets, logits=True).transform(odds[:8], logits=True)
    torch.testing.assert_close(ours, theirs, atol=3e-3, rtol=0)


def test_a_known_parabola_is_recovered() -> None:
    odds, targets = simulated(100_000)
    out = QuadraticScaling().fit(odds, targets, logits=True).transform(odds, logits=True)
    assert (out - (0.1 * odds**2 + 0.7 * odds - 0.5).sigmoid()).abs().mean() < 5e-3


def test_the_other_class_is_the_mirror_image() -> None:
    odds, targets = simulated(500)
    one = QuadraticScaling().fit(odds, targets, logits=True)
    other = QuadraticScaling().fit(-odds, 1 - targets, logits=True)
    assert other.curvature == pytest.approx(-one.curvature, abs=1e-8)
    assert other.slope == pytest.approx(one.slope, abs=1e-8)
    assert other.intercept == pytest.approx(-one.intercept, abs=1e-8)


def test_weights_are_replication() -> None:
    odds, targets = simulated(300)
    times = torch.randint(4, (300,), generator=torch.Generator().manual_seed(0))
    weighted = QuadraticScaling().fit(odds, targets, weights=times, logits=True).transform(odds, logits=True)
    again = QuadraticScaling().fit(odds.repeat_interleave(times), targets.repeat_interleave(times), logits=True)
    torch.testing.assert_close(weighted, again.transform(odds, logits=True), atol=1e-8, rtol=0)


def test_a_strong_penalty_leaves_a_temperature_and_smoothing() -> None:
    odds, targets = simulated(300)
    scaled = QuadraticScaling(strength=1e8).fit(odds, targets, logits=True).transform(odds, logits=True)
    temperature = TemperatureScaling().fit(odds, targets, logits=True).transform(odds, logits=True)
    torch.testing.assert_close(scaled, (300 * temperature + 0.5) / 301, atol=1e-6, rtol=0)


def test_three_classes_are_refused() -> None:
    with pytest.raises(InvalidProbabilitiesError, match="QuadraticScaling is for two classes, but `probs` have 3"):
        QuadraticScaling().fit(torch.full((4, 3), 1 / 3), torch.tensor([0, 1, 2, 0]))
