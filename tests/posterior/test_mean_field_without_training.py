"""Widening without training: the loss moves by what was asked for, and widths follow the weights' sizes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError
from calibayes.randomness import generator_for


def trained() -> tuple[cb.Point, Tensor, Tensor]:
    torch.manual_seed(0)
    x = torch.randn(300, 5)
    y = (x[:, :3] + 0.5 * torch.randn(300, 3)).argmax(-1)
    point = cb.Point(nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 3)))
    cb.fit(point, (x, y), cb.Objective(lam=0.0), epochs=30, batch_size=50, optimizer=lambda p: torch.optim.Adam(p, lr=0.01))
    return point, x, y


def loss(posterior: cb.MeanField, x: Tensor, y: Tensor, samples: int = 4) -> float:
    """The mean cross-entropy over samples with the noise that the search uses."""
    with torch.no_grad():
        draws = [posterior.draw(generator_for(torch.device("cpu"), 0, "widen", s)) for s in range(samples)]
        return sum(float(F.cross_entropy(posterior.call(vectors, x), y)) for vectors in draws) / samples


@pytest.mark.parametrize("by", [0.005, 0.05, 0.3])
def test_the_training_loss_rises_by_what_was_asked_for(by: float) -> None:
    point, x, y = trained()
    posterior = cb.MeanField.widened(point, (x, y), by=by)
    before = float(F.cross_entropy(point(x).detach(), y))
    assert loss(posterior, x, y) - before == pytest.approx(by, rel=0.05)
    assert not posterior.training


def test_widths_are_proportional_to_the_size_of_each_tensor() -> None:
    point, x, y = trained()
    posterior = cb.MeanField.widened(point, (x, y), by=0.05)
    spread = posterior.groups[-1 if len(posterior.groups) == 1 else 0].layout.views(posterior.rho.detach().exp())
    ratios = [float((spread[name] / weight.detach().square().mean().sqrt()).mean()) for name, weight in point.mean().items()]
    assert max(ratios) == pytest.approx(min(ratios), rel=1e-4)


def test_the_mean_stays_and_a_plain_network_is_enough() -> None:
    point, x, y = trained()
    one, other = cb.MeanField.widened(point, (x, y)), cb.MeanField.widened(point.network(), (x, y))
    assert torch.equal(one.rho, other.rho)
    for name, weight in point.mean().items():
        assert torch.equal(one.mean()[name], weight)


def test_batches_and_weights_count_as_they_should() -> None:
    point, x, y = trained()
    whole = cb.MeanField.widened(point, (x, y), by=0.05)
    pieces = cb.MeanField.widened(point, (x, y), by=0.05, batch_size=37)
    torch.testing.assert_close(whole.rho, pieces.rho, rtol=1e-3, atol=1e-3)
    twice = cb.MeanField.widened(point, (torch.cat([x, x[:100]]), torch.cat([y, y[:100]])), by=0.05)
    weights = torch.ones(300)
    weights[:100] = 2
    weighted = cb.MeanField.widened(point, (x, y, weights), by=0.05)
    torch.testing.assert_close(twice.rho, weighted.rho, rtol=1e-3, atol=1e-3)


def test_refusals() -> None:
    point, x, y = trained()
    with pytest.raises(InvalidArgumentError, match="`by`"):
        cb.MeanField.widened(point, (x, y), by=0.0)
    steep = nn.Sequential(point.network(), nn.Linear(3, 3))
    nn.init.eye_(steep[1].weight)  # type: ignore[arg-type]
    with torch.no_grad():
        steep[1].weight.mul_(1e7)  # type: ignore[operator]
    with pytest.raises(InvalidArgumentError, match="larger `by`"):
        cb.MeanField.widened(steep, (x, y), by=1e-6)
    with pytest.raises(InvalidArgumentError, match="start from its members"):
        cb.MeanField.widened(cb.Ensemble([point]), (x, y))


def test_weights_without_a_distribution_are_left_alone() -> None:
    net = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    _, x, y = trained()
    point = cb.Point(net)
    cb.fit(point, (x, y), cb.Objective(lam=0.0), epochs=20, batch_size=50, optimizer=lambda p: torch.optim.Adam(p, lr=0.01))
    assert cb.MeanField.widened(point, (x, y), by=0.05).num_bayesian == 5 * 8 + 8 + 8 * 3 + 3
    assert cb.MeanField.widened(point, (x, y), by=0.05, where="3.*").num_bayesian == 8 * 3 + 3
