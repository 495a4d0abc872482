"""Training recovers posteriors that are known in closed form, mean and standard deviation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import calibayes as cb


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


def adam(parameters: object) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.05)  # type: ignore[arg-type]


def decay(optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=600)


@pytest.mark.parametrize(("beta", "prior_mean"), [(1.0, 0.0), (0.25, 2.0)])
def test_gaussian_likelihood_has_a_gaussian_posterior(beta: float, prior_mean: float) -> None:
    n, k, s = 20, 1.5, 0.3
    x = torch.randn(n, 3, dtype=torch.float64) / k**0.5 + torch.tensor([1.0, -0.5, 0.2], dtype=torch.float64)
    precision = n * k / beta + 1 / s**2
    mean = (k / beta * x.sum(0) + prior_mean / s**2) / precision

    net = GaussianLikelihood(3, k)
    centre = {"theta": torch.full((3,), prior_mean, dtype=torch.float64)}
    posterior = cb.MeanField(net, prior_std=s, init_std=0.05, prior_mean=centre)
    train = (x, torch.zeros(n, dtype=torch.long))
    cb.fit(
        posterior,
        train,
        cb.Objective(lam=0.0, beta=beta),
        optimizer=adam,
        scheduler=decay,
        epochs=600,
        batch_size=n,
        samples=16,
        sample_chunk=16,
    )
    torch.testing.assert_close(posterior.mu.detach(), mean, rtol=0, atol=0.1 * precision**-0.5)
    torch.testing.assert_close(posterior.rho.detach().exp(), torch.full_like(mean, precision**-0.5), rtol=0.05, atol=0)


def test_without_a_likelihood_the_posterior_is_the_prior() -> None:
    class Indifferent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            logits: Tensor = 0.0 * self.layer(x)
            return logits

    posterior = cb.MeanField(Indifferent(), prior_std=0.3, init_std=0.01)
    train = (torch.randn(10, 4), torch.arange(10) % 3)
    cb.fit(posterior, train, cb.Objective(lam=0.0, beta=1.0), optimizer=adam, scheduler=decay, epochs=600, batch_size=10)
    torch.testing.assert_close(posterior.mu.detach(), torch.zeros(15), rtol=0, atol=1e-3)
    torch.testing.assert_close(posterior.rho.detach().exp(), torch.full((15,), 0.3), rtol=1e-3, atol=0)
    assert float(posterior.kl().detach()) == pytest.approx(0.0, abs=1e-3)
