"""Training recovers posteriors that are known in closed form, mean and standard deviation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.posterior import Posterior


class GaussianLikelihood(nn.Module):
    """A classifier whose cross-entropy for class 0 is c + k/2·‖x − θ‖²: a Gaussian likelihood of the data.

    For two classes with logits (z, 0), −log p(0) = log(1 + e^{−z}); z = −log(e^a − 1) makes that equal to a.
    """

    def __init__(self, dimension: int, precision: float) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.zeros(dimension, dtype=torch.float64))
        self.precision = precision

    def forward(self, x: Tensor) -> Tensor:
        a = 1.0 + 0.5 * self.precision * (x - self.theta).square().sum(-1)
        z = -torch.log(torch.expm1(a))
        return torch.stack([z, torch.zeros_like(z)], dim=-1)


class Indifferent(nn.Module):
    """Without a likelihood: logits of zero."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = 0.0 * self.layer(x)
        return logits


def adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.05)


def fitted(posterior: cb.MeanField, x: Tensor, y: Tensor, beta: float, optimizer: Any, epochs: int, **settings: Any) -> None:
    """Train on the whole data at once, with a learning rate that ends at zero."""

    def decay(made: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
        return torch.optim.lr_scheduler.CosineAnnealingLR(made, T_max=epochs)

    objective = cb.Objective(lam=0.0, beta=beta)
    cb.fit(posterior, (x, y), objective, optimizer=optimizer, scheduler=decay, epochs=epochs, batch_size=len(y), **settings)


@pytest.mark.parametrize(
    ("optimizer", "epochs"),
    [(adam, 600), (cb.NaturalGradient(lr=0.1, betas=(0.9, 0.995)), 2000)],
    ids=["adam", "natural gradient"],
)
@pytest.mark.parametrize(("beta", "prior_mean"), [(1.0, 0.0), (0.25, 2.0)])
def test_gaussian_likelihood_has_a_gaussian_posterior(beta: float, prior_mean: float, optimizer: Any, epochs: int) -> None:
    n, k, s = 20, 1.5, 0.3
    x = torch.randn(n, 3, dtype=torch.float64) / k**0.5 + torch.tensor([1.0, -0.5, 0.2], dtype=torch.float64)
    precision = n * k / beta + 1 / s**2
    mean = (k / beta * x.sum(0) + prior_mean / s**2) / precision
    centre = {"theta": torch.full((3,), prior_mean, dtype=torch.float64)}
    posterior = cb.MeanField(GaussianLikelihood(3, k), prior_std=s, init_std=0.05, prior_mean=centre)
    fitted(posterior, x, torch.zeros(n, dtype=torch.long), beta, optimizer, epochs, samples=16, sample_chunk=16)
    torch.testing.assert_close(posterior.mu.detach(), mean, rtol=0, atol=0.1 * precision**-0.5)
    torch.testing.assert_close(posterior.rho.detach().exp(), torch.full_like(mean, precision**-0.5), rtol=0.05, atol=0)


@pytest.mark.parametrize(
    ("optimizer", "epochs", "tolerance"),
    [(adam, 600, 1e-3), (cb.NaturalGradient(lr=0.1, betas=(0.9, 0.95)), 500, 1e-4)],
    ids=["adam", "natural gradient"],
)
def test_without_a_likelihood_the_posterior_is_the_prior(optimizer: Any, epochs: int, tolerance: float) -> None:
    posterior = cb.MeanField(Indifferent(), prior_std=0.3, init_std=0.01)
    fitted(posterior, torch.randn(10, 4), torch.arange(10) % 3, 1.0, optimizer, epochs)
    torch.testing.assert_close(posterior.mu.detach(), torch.zeros(15), rtol=0, atol=1e-3)
    torch.testing.assert_close(posterior.rho.detach().exp(), torch.full((15,), 0.3), rtol=1e-3, atol=0)
    assert float(posterior.kl().detach()) == pytest.approx(0.0, abs=tolerance)


def test_the_bias_of_a_fast_curvature_average_is_the_one_that_theory_says() -> None:
    """The precision is too large by the share (1−β₂)/2·V, with V the variance of ĥ/(h+δ): shown at 0.9, gone at 0.999.

    With ĥ = k(μ−x̄)ε/σ + kε², V is ((μ−x̄)²k²/σ² + 2k²)/(R(k+δ)²). E[σ²] is right to second order whatever β₂ is.
    """
    n, k, s, dimension, samples = 20, 1.5, 0.3, 200, 2
    x = torch.randn(n, dimension, dtype=torch.float64) / k**0.5
    precision = n * k + 1 / s**2
    mean = k * x.sum(0) / precision
    variance = ((mean - x.mean(0)).square() * k**2 * precision + 2 * k**2) / (samples * (precision / n) ** 2)
    excess, widths = {}, {}
    for beta2 in (0.9, 0.999):
        posterior = cb.MeanField(GaussianLikelihood(dimension, k), prior_std=s, init_std=precision**-0.5)
        with torch.no_grad():
            posterior.mu.copy_(mean)
        seen: list[Tensor] = []

        def look(each: Posterior, epoch: int, seen: list[Tensor] = seen) -> None:
            if epoch > 100:
                assert isinstance(each, cb.MeanField)
                seen.append((-2 * each.rho.detach()).exp())

        cb.fit(
            posterior,
            (x, torch.zeros(n, dtype=torch.long)),
            cb.Objective(lam=0.0, beta=1.0),
            optimizer=cb.NaturalGradient(lr=1e-3, betas=(0.9, beta2)),
            epochs=900,
            batch_size=n,
            samples=samples,
            sample_chunk=samples,
            on_epoch=look,
        )
        found = torch.stack(seen)
        excess[beta2] = float(found.mean()) / precision - 1
        widths[beta2] = float(found.reciprocal().mean()) * precision - 1
    expected = 0.05 * float(variance.mean())
    assert expected > 0.025
    assert excess[0.9] == pytest.approx(expected, rel=0.25)
    assert abs(excess[0.999]) < 0.25 * expected
    assert abs(widths[0.9]) < 0.25 * expected
