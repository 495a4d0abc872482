"""Natural-gradient steps against a plain loop, and the optimiser by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.training.natural import BATCH, PRIORS, SEED, N, data, flat, mlp, posterior_of, prior_mean
from torch import Tensor, nn

import calibayes as cb
from calibayes.randomness import generator_for


def plain_loop(
    objective: cb.Objective,
    settings: cb.NaturalGradient,
    samples: int,
    epochs: int,
    rates: Callable[[int], float] = lambda epoch: 1.0,
) -> Tensor:
    """The update as the paper has it, one line a formula, with AdamW of torch for the biases."""
    net, (x, y) = mlp(), data()
    names = {"0.weight": PRIORS["0.*"], "2.weight": PRIORS["2.*"]}
    mean = {name: dict(net.named_parameters())[name].detach().clone() for name in names}
    sigma = {name: torch.full_like(value, 0.1) for name, value in mean.items()}
    centre = prior_mean()
    biases = {name: nn.Parameter(value.detach().clone()) for name, value in net.named_parameters() if name.endswith("bias")}
    adamw = torch.optim.AdamW(biases.values(), lr=settings.point_lr, weight_decay=settings.point_weight_decay)
    beta1, beta2 = settings.betas
    step, h, m = 0, {}, {}
    last = math.inf
    for epoch in range(epochs):
        order = torch.randperm(N, generator=generator_for(torch.device("cpu"), SEED, "shuffle", epoch))
        for batch, index in enumerate(order.split(BATCH)):
            beta = objective.beta(step) if callable(objective.beta) else objective.beta
            lam = objective.lam
            assert lam is not None
            assert not callable(lam)
            ess = N / beta
            gradient = {name: torch.zeros_like(value) for name, value in mean.items()}
            curvature = {name: torch.zeros_like(value) for name, value in mean.items()}
            adamw.zero_grad()
            for r in range(samples):
                generator = generator_for(torch.device("cpu"), SEED, "noise", epoch, batch, r)
                noise = {
                    name: torch.randn(value.numel(), dtype=torch.float64, generator=generator).view_as(value)
                    for name, value in mean.items()
                }
                theta = {name: (mean[name] + sigma[name] * noise[name]).requires_grad_() for name in names}
                logits = torch.func.functional_call(net, {**theta, **biases}, (x[index],))
                aece = cb.calibration.wmmce(logits.softmax(-1), y[index])
                ((F.cross_entropy(logits, y[index]) + lam / len(index) * aece) / samples).backward()
                for name in names:
                    assert theta[name].grad is not None
                    gradient[name] += theta[name].grad  # type: ignore[arg-type]
                    curvature[name] += theta[name].grad * noise[name] / sigma[name]  # type: ignore[operator]
            for name, prior_std in names.items():
                delta = beta / (N * prior_std**2)
                if step == 0:
                    h[name] = 1 / (ess * sigma[name] ** 2) - delta
                    m[name] = torch.zeros_like(mean[name])
                if beta < last < math.inf:
                    h[name] = torch.where(h[name] < 0, h[name] * beta / last, h[name])
                m[name] = beta1 * m[name] + (1 - beta1) * gradient[name]
                difference = h[name] - curvature[name]
                h[name] = (
                    beta2 * h[name] + (1 - beta2) * curvature[name] + 0.5 * (1 - beta2) ** 2 * difference**2 / (h[name] + delta)
                )
                direction = m[name] / (1 - beta1 ** (step + 1)) + delta * (mean[name] - centre[name])
                mean[name] = mean[name] - settings.lr * rates(epoch) * direction / (h[name] + delta)
                sigma[name] = 1 / (ess * (h[name] + delta)).sqrt()
            adamw.param_groups[0]["lr"] = settings.point_lr * rates(epoch)
            adamw.step()
            step, last = step + 1, beta
    pairs = [part for name in names for part in (mean[name].reshape(-1), sigma[name].log().reshape(-1))]
    return torch.cat([*pairs, *(bias.detach() for bias in biases.values())])


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize(
    "beta",
    [0.4, cb.schedules.Linear(start=2.0, end=0.05, steps=5), cb.schedules.Linear(start=0.1, end=1.0, steps=4)],
    ids=["constant", "falling", "rising"],
)
def test_steps_are_those_of_a_plain_loop(samples: int, beta: Any) -> None:
    settings = cb.NaturalGradient(lr=0.2, betas=(0.8, 0.7), point_lr=0.02, point_weight_decay=0.3)
    objective = cb.Objective(lam=5.0, beta=beta)
    posterior = posterior_of(mlp())
    cb.fit(posterior, data(), objective, optimizer=settings, epochs=4, batch_size=BATCH, samples=samples, seed=SEED)
    expected = plain_loop(objective, settings, samples, epochs=4)
    torch.testing.assert_close(flat(posterior), expected, rtol=1e-9, atol=1e-10)
    assert bool((flat(posterior) - flat(posterior_of(mlp()))).abs().min() > 0)


def test_a_scheduler_scales_the_steps_of_pairs_and_points() -> None:
    settings = cb.NaturalGradient(lr=0.2, point_lr=0.02)
    objective = cb.Objective(lam=0.0, beta=0.4)
    posterior = posterior_of(mlp())
    history = cb.fit(
        posterior,
        data(),
        objective,
        optimizer=settings,
        scheduler=lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5),
        epochs=3,
        batch_size=BATCH,
        seed=SEED,
    )
    expected = plain_loop(objective, settings, 1, epochs=3, rates=lambda epoch: 0.5**epoch)
    torch.testing.assert_close(flat(posterior), expected, rtol=1e-9, atol=1e-10)
    assert [row["lr"] for row in history.epochs] == [0.2, 0.1, 0.05]


def test_a_rescaled_rate_is_that_of_sgd_at_the_start() -> None:
    """The first step: h has not moved at β₂ → 1, and all weights start with one σ."""
    found = []
    for optimizer in (
        cb.NaturalGradient(lr=0.1, betas=(0.9, 1 - 1e-12), rescale_lr=True),
        lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    ):
        posterior = cb.MeanField(mlp(), prior_std=0.5, init_std=0.1)
        cb.fit(posterior, data(), cb.Objective(lam=0.0, beta=0.4), optimizer=optimizer, epochs=1, batch_size=N, seed=SEED)
        found.append(posterior.mu.detach())
    torch.testing.assert_close(found[0], found[1], rtol=1e-8, atol=1e-10)


def test_a_state_dict_moves_all_that_the_next_step_depends_on() -> None:
    objective = cb.Objective(lam=0.0, beta=cb.schedules.Linear(start=1.0, end=0.1, steps=6))
    found = []
    for parted in (False, True):
        torch.manual_seed(0)
        posterior = posterior_of(mlp())
        optimizer = cb.NaturalGradient(lr=0.1).bind(posterior, objective, N)
        for step in range(6):
            if parted and step == 3:
                kept = optimizer.state_dict()
                optimizer = cb.NaturalGradient(lr=0.1).bind(posterior, objective, N)
                optimizer.load_state_dict(kept)
            for parameter in posterior.parameters():
                parameter.grad = 0.01 * torch.randn_like(parameter)
            optimizer.step()
        found.append(flat(posterior))
    assert torch.equal(*found)


def test_without_samples_mu_takes_steps_of_adamw_and_the_curvature_stays() -> None:
    posterior = posterior_of(mlp())
    twin = posterior_of(mlp())
    settings = cb.NaturalGradient(lr=0.5, point_lr=0.02, point_weight_decay=0.1)
    optimizer = settings.bind(posterior, cb.Objective(beta=0.4), N)
    adamw = torch.optim.AdamW([group.mean() for group in twin.groups], lr=0.02, weight_decay=0.1)
    rho = posterior.rho.detach().clone()
    for step in range(5):
        for group, other in zip(posterior.groups, twin.groups, strict=True):
            gradient = torch.randn_like(group.mean())
            group.mean().grad, other.mean().grad = gradient, gradient.clone()
        if step == 3:  # a scheduler scales these steps too
            for optimiser in (optimizer, adamw):
                for each in optimiser.param_groups:
                    each["lr"] *= 0.5
        optimizer.step()
        adamw.step()
    for group, other in zip(posterior.groups, twin.groups, strict=True):
        torch.testing.assert_close(group.mean(), other.mean(), rtol=1e-12, atol=1e-12)
    assert torch.equal(posterior.rho.detach(), rho)


def test_parameters_without_a_gradient_stay() -> None:
    posterior = posterior_of(mlp())
    before = flat(posterior)
    cb.NaturalGradient().bind(posterior, cb.Objective(beta=0.4), N).step()
    assert torch.equal(flat(posterior), before)


def test_a_closure_is_called_with_gradients_on() -> None:
    posterior = posterior_of(mlp())
    before = flat(posterior)

    def closure() -> Tensor:
        assert torch.is_grad_enabled()
        loss: Tensor = sum(parameter.square().sum() for parameter in posterior.parameters())  # type: ignore[assignment]
        loss.backward()
        return loss.detach()

    assert float(cb.NaturalGradient().bind(posterior, cb.Objective(beta=0.4), N).step(closure)) > 0
    assert not torch.equal(flat(posterior), before)
