"""The prior's precision, the evidence and the KL of the last-layer Laplace approximation."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from tests.posterior.laplace_cases import KINDS, WIDE, Net, data, fitted, precision
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import calibayes as cb
from calibayes.errors import (
    InvalidArgumentError,
)
from calibayes.posterior.laplace_prior import log_evidence


@pytest.mark.parametrize("kind", KINDS)
def test_the_log_evidence_is_that_of_the_formula(kind: str) -> None:
    net, (x, y) = Net().to(WIDE), data()
    posterior = fitted(net, (x, y), 0.4, covariance=kind)
    theta = torch.cat([value.flatten() for value in net.head.parameters()]).detach()
    likelihood = -nn.functional.cross_entropy(net.eval()(x).detach(), y, reduction="sum")
    prior = torch.distributions.Normal(0, torch.tensor(0.4, dtype=WIDE).rsqrt()).log_prob(theta).sum()
    expected = likelihood + prior - 0.5 * torch.logdet(precision(posterior) / (2 * math.pi))
    assert posterior.log_marginal_likelihood == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_the_evidence_has_its_maximum_at_the_precision_found(kind: str, scale: float) -> None:
    net = Net().to(WIDE)
    with torch.no_grad():
        net.head.weight.mul_(scale)
    posterior = fitted(net, data(), "marginal-likelihood", covariance=kind)
    best, highest = posterior.prior_precision, posterior.log_marginal_likelihood
    group = copy.deepcopy(posterior.group)
    for factor in [*torch.logspace(-8, 8, 81).tolist(), 1.01, 1 / 1.01]:
        group.prior_precision = best * factor
        assert log_evidence(group) <= highest + 1e-9
    steps = []
    for factor in (math.exp(1e-4), math.exp(-1e-4)):
        group.prior_precision = best * factor
        steps.append(log_evidence(group))
    assert abs(steps[0] - steps[1]) / 2e-4 < 1e-4


def test_an_evidence_without_a_maximum_is_refused() -> None:
    net = Net().to(WIDE)
    with torch.no_grad():
        net.head.weight.zero_()
        net.head.bias.zero_()
    with pytest.raises(InvalidArgumentError, match="weights are all zero"):
        fitted(net, data(), "marginal-likelihood")
    with torch.no_grad():
        net.head.bias.copy_(torch.tensor([1e5, 0, 0]))
    with pytest.raises(InvalidArgumentError, match="saturated"):
        fitted(net, data(), "marginal-likelihood")


def test_validation_finds_the_precision_with_the_lowest_nll() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(340, 4, generator=generator)
    y = (x[:, :3] + 0.5 * torch.randn(340, 3, generator=generator)).argmax(-1)
    net = nn.Sequential(nn.Linear(4, 60), nn.Tanh(), nn.Linear(60, 3))
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(100):  # overfitted to forty examples
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[:40]), y[:40]).backward()
        optimizer.step()
    train, valid = (x[:40], y[:40]), (x[40:], y[40:])
    posterior = fitted(net, train, "validation", validation=valid)

    def nll(delta: float) -> float:
        probs = cb.predict(fitted(net, train, delta), valid[0], samples=200).probs
        return float(nn.functional.nll_loss(probs.log(), valid[1]))

    result = nll(posterior.prior_precision)
    assert result < min(nll(1e-5), nll(1e5)) - 0.05
    assert all(result < nll(delta) + 0.05 for delta in torch.logspace(-5, 5, 21).tolist())
    again = fitted(net, train, "validation", validation=DataLoader(TensorDataset(*valid), batch_size=64))
    assert again.prior_precision == pytest.approx(posterior.prior_precision)


@pytest.mark.parametrize("kind", KINDS)
def test_the_kl_is_that_of_two_gaussians(kind: str) -> None:
    posterior = fitted(prior_precision=0.3, covariance=kind)
    theta = posterior.group.mean().detach()
    q = torch.distributions.MultivariateNormal(theta, precision_matrix=precision(posterior))
    p = torch.distributions.MultivariateNormal(torch.zeros_like(theta), precision_matrix=0.3 * torch.eye(18, dtype=WIDE))
    torch.testing.assert_close(posterior.kl(), torch.distributions.kl_divergence(q, p))
