from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.posterior.zoo import CASES, Case, FrozenBackbone, mlp
from torch.func import functional_call

import calibayes as cb
from calibayes.errors import InvalidArgumentError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("kind", [cb.Point, cb.MeanField])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_parameter_with_a_leading_axis(kind: Any, case: Case) -> None:
    posterior = kind(case.build())
    sample, network = posterior.sample(3), posterior.network()
    assert {name: weight.shape[1:] for name, weight in sample.items()} == {
        name: weight.shape for name, weight in network.named_parameters(remove_duplicate=False)
    }
    assert {weight.shape[0] for weight in sample.values()} == {3}


def test_the_generator_decides() -> None:
    posterior = cb.MeanField(mlp())
    one, same, other = (posterior.sample(2, generator=generator(seed))["0.weight"] for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    state = torch.get_rng_state()
    posterior.sample(2, generator=generator())
    assert torch.equal(torch.get_rng_state(), state)


def test_more_samples_begin_with_the_same_ones() -> None:
    posterior = cb.MeanField(mlp())
    few, many = (posterior.sample(n, generator=generator())["2.bias"] for n in (2, 5))
    assert torch.equal(many[:2], few)


def test_mean_and_standard_deviation() -> None:
    """Within five standard errors of what μ and ρ say, for each of 51 weights; pairs are uncorrelated."""
    posterior = cb.MeanField(mlp(), init_std={"0.*": 0.4, "*": 0.1})
    count = 20_000
    sample = torch.cat([weight.reshape(count, -1) for weight in posterior.sample(count, generator=generator()).values()], dim=1)
    standardised = ((sample - posterior.mu) / posterior.rho.exp()).detach()
    assert float(standardised.mean(0).abs().max()) < 5 / count**0.5
    assert float((standardised.std(0) - 1).abs().max()) < 5 / (2 * count) ** 0.5
    correlations = torch.corrcoef(standardised.T) - torch.eye(51)
    assert float(correlations.abs().max()) < 5 / count**0.5


def test_gradient_of_a_function_of_samples() -> None:
    r"""For f = Σ θ²: ∂f/∂μ = Σ 2θ and ∂f/∂ρ = Σ 2θ(θ − μ), since θ − μ = σε."""
    posterior = cb.MeanField(mlp().double(), init_std=0.3)
    sample = posterior.sample(4, generator=generator())
    sum((weight**2).sum() for weight in sample.values()).backward()  # type: ignore[union-attr]
    theta = torch.cat([weight.detach().reshape(4, -1) for weight in sample.values()], dim=1)
    assert posterior.mu.grad is not None
    assert posterior.rho.grad is not None
    assert torch.allclose(posterior.mu.grad, 2 * theta.sum(0), rtol=1e-12)
    assert torch.allclose(posterior.rho.grad, (2 * theta * (theta - posterior.mu.detach())).sum(0), rtol=1e-12)


def test_samples_of_a_point_are_its_weights() -> None:
    posterior = cb.Point(mlp())
    mean = posterior.mean()
    for name, weight in posterior.sample(3).items():
        assert torch.equal(weight, mean[name].expand(3, *mean[name].shape))


def test_a_sample_runs_in_the_users_own_network() -> None:
    net = FrozenBackbone().eval()
    posterior, x = cb.MeanField(net), torch.randn(5, 4)
    sample = posterior.sample(2, generator=generator())
    drawing = generator()
    for k in range(2):
        expected = functional_call(net, {name: weight[k] for name, weight in sample.items()}, (x,))
        assert torch.equal(posterior.call(posterior.draw(drawing), x), expected)


@pytest.mark.parametrize("n", [0, -1, 1.0, True])
def test_a_bad_number_is_quoted(n: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"`n` to be a positive integer, but got {n!r}"):
        cb.MeanField(mlp()).sample(n)
