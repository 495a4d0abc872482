"""Natural-gradient steps against a plain loop, and against posteriors that are known in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.training.test_known_posteriors import GaussianLikelihood
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError, OptimizerError
from calibayes.posterior import Posterior
from calibayes.randomness import generator_for

N, BATCH, SEED = 60, 30, 5
PRIORS = {"0.*": 0.5, "2.*": 0.3}


def mlp() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)).double()


def data(n: int = N) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(n, 6, dtype=torch.float64, generator=generator)
    return x, (x[:, :4] + 0.7 * torch.randn(n, 4, dtype=torch.float64, generator=generator)).argmax(-1)


def prior_mean() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    shapes = {"0.weight": (8, 6), "2.weight": (4, 8)}
    return {name: 0.1 * torch.randn(shape, dtype=torch.float64, generator=generator) for name, shape in shapes.items()}


def posterior_of(net: nn.Module, **settings: Any) -> cb.MeanField:
    """Two pairs with priors of their own, and the biases as points."""
    return cb.MeanField(
        net, **{"prior_std": PRIORS, "init_std": 0.1, "where": "*weight", "prior_mean": prior_mean(), **settings}
    )


def flat(posterior: Posterior) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in posterior.parameters()])


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


# --- posteriors in closed form ---


@pytest.mark.parametrize(("beta", "prior_mean"), [(1.0, 0.0), (0.25, 2.0)])
def test_a_gaussian_likelihood_has_a_gaussian_posterior(beta: float, prior_mean: float) -> None:
    n, k, s = 20, 1.5, 0.3
    x = torch.randn(n, 3, dtype=torch.float64) / k**0.5 + torch.tensor([1.0, -0.5, 0.2], dtype=torch.float64)
    precision = n * k / beta + 1 / s**2
    mean = (k / beta * x.sum(0) + prior_mean / s**2) / precision
    centre = {"theta": torch.full((3,), prior_mean, dtype=torch.float64)}
    posterior = cb.MeanField(GaussianLikelihood(3, k), prior_std=s, init_std=0.05, prior_mean=centre)
    cb.fit(
        posterior,
        (x, torch.zeros(n, dtype=torch.long)),
        cb.Objective(lam=0.0, beta=beta),
        optimizer=cb.NaturalGradient(lr=0.1, betas=(0.9, 0.995)),
        scheduler=lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2000),
        epochs=2000,
        batch_size=n,
        samples=16,
        sample_chunk=16,
    )
    torch.testing.assert_close(posterior.mu.detach(), mean, rtol=0, atol=0.1 * precision**-0.5)
    torch.testing.assert_close(posterior.rho.detach().exp(), torch.full_like(mean, precision**-0.5), rtol=0.05, atol=0)


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


def test_without_a_likelihood_the_posterior_is_the_prior() -> None:
    class Indifferent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            logits: Tensor = 0.0 * self.layer(x)
            return logits

    posterior = cb.MeanField(Indifferent(), prior_std=0.3, init_std=0.01)
    cb.fit(
        posterior,
        (torch.randn(10, 4), torch.arange(10) % 3),
        cb.Objective(lam=0.0, beta=1.0),
        optimizer=cb.NaturalGradient(lr=0.1, betas=(0.9, 0.95)),
        epochs=500,
        batch_size=10,
    )
    assert float(posterior.kl().detach()) == pytest.approx(0.0, abs=1e-4)


# --- how `fit` takes the steps ---


def trained(**settings: Any) -> Tensor:
    net = settings.pop("net", mlp())
    x, y = data()
    posterior = posterior_of(net)
    dtype = next(net.parameters()).dtype
    optimizer = settings.pop("optimizer", cb.NaturalGradient(lr=0.1, betas=(0.9, 0.95)))
    chosen = {"epochs": 4, "batch_size": BATCH, "samples": 2, "seed": SEED, **settings}
    cb.fit(posterior, (x.to(dtype), y), cb.Objective(lam=5.0, beta=0.4), optimizer=optimizer, **chosen)
    return flat(posterior)


@pytest.mark.parametrize("size", [7, 16])
def test_micro_batches_do_not_change_the_result(size: int) -> None:
    torch.testing.assert_close(trained(micro_batch_size=size), trained(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_stays_near(precision: str) -> None:
    """With float16 the gradients are scaled, and unscaled before the step."""
    start, full = flat(posterior_of(mlp().float())), trained(net=mlp().float())
    half = trained(net=mlp().float(), precision=precision)
    assert not torch.equal(half, full)
    assert float((half - full).norm()) < 0.05 * float((full - start).norm())


def test_clipping_bounds_both_gradients() -> None:
    """With β₁ = β₂ = 0 and h unmoved by it, a step of μ is no longer than the clipped gradient allows."""
    assert not torch.allclose(trained(clip_norm=0.01), trained())
    posterior = cb.MeanField(mlp(), prior_std=0.5, init_std=0.1)
    optimizer = cb.NaturalGradient(lr=1.0, betas=(0.0, 0.5)).bind(posterior, cb.Objective(beta=0.4), N)
    before = posterior.mu.detach().clone()
    for parameter in posterior.parameters():
        parameter.grad = torch.randn_like(parameter)
    torch.nn.utils.clip_grad_norm_(posterior.parameters(), 1e-9)
    optimizer.step()
    delta = 0.4 / (N * 0.25)
    start = 0.4 / (N * 0.01)
    halfway = delta + (start - delta) * 0.5 + 0.125 * (start - delta) ** 2 / start  # ĥ = 0
    torch.testing.assert_close(posterior.mu.detach(), before * (1 - delta / halfway), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(posterior.rho.detach().exp(), torch.full_like(before, (0.4 / N / halfway) ** 0.5))


class StoppedError(Exception):
    """Stands for a machine that stops."""


def test_interrupted_and_resumed_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    def stop(_: Posterior, epoch: int) -> None:
        if epoch == 3:
            raise StoppedError

    def decay(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    settings: dict[str, Any] = {"epochs": 6, "scheduler": decay, "checkpoint_seconds": 0.0}
    whole = trained(net=mlp().float(), **settings)
    with pytest.raises(StoppedError):
        trained(net=mlp().float(), checkpoint=tmp_path, on_epoch=stop, **settings)
    assert list(tmp_path.iterdir())
    assert torch.equal(trained(net=mlp().float(), checkpoint=tmp_path, **settings), whole)


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


# --- what is refused ---


@pytest.mark.parametrize("beta", [0.0, cb.schedules.Linear(end=1.0, steps=10)], ids=["zero", "warm-up"])
def test_no_kl_at_the_start_is_refused(beta: Any) -> None:
    with pytest.raises(OptimizerError, match=r"beta is 0 at step 0.*schedule that starts above 0"):
        cb.fit(posterior_of(mlp()), data(), cb.Objective(beta=beta), optimizer=cb.NaturalGradient(), epochs=1)


def test_no_kl_later_is_refused_at_that_step() -> None:
    falling = cb.schedules.Linear(start=1.0, end=0.0, steps=3)
    with pytest.raises(OptimizerError, match=r"beta is 0 at step 3"):
        cb.fit(
            posterior_of(mlp()), data(), cb.Objective(beta=falling), optimizer=cb.NaturalGradient(), epochs=5, batch_size=BATCH
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("init_std", [0.3, 0.6, {"0.*": 0.1, "2.*": 0.3}], ids=["as wide", "wider", "in part"])
def test_a_start_as_wide_as_the_prior_is_refused(init_std: Any, dtype: torch.dtype) -> None:
    posterior = posterior_of(mlp(), prior_std=0.3, init_std=init_std).to(dtype)
    x, y = data()
    with pytest.raises(OptimizerError, match=r"largest standard deviation is 0\.\d+ with prior_std=0\.3.*smaller `init_std`"):
        cb.fit(posterior, (x.to(dtype), y), cb.Objective(), optimizer=cb.NaturalGradient(), epochs=1)


def test_a_posterior_without_gaussians_is_refused() -> None:
    with pytest.raises(OptimizerError, match=r"this posterior \(point\) has none.*torch\.optim\.Adam"):
        cb.fit(cb.Point(mlp()), data(), cb.Objective(), optimizer=cb.NaturalGradient(), epochs=1)


def test_the_class_in_the_place_of_settings_is_refused() -> None:
    given: Any = cb.NaturalGradient
    with pytest.raises(OptimizerError, match=r"Write `NaturalGradient\(\)`"):
        cb.fit(posterior_of(mlp()), data(), cb.Objective(), optimizer=given, epochs=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0.0}, r"`lr` to be a positive finite number, but got 0\.0"),
        ({"point_lr": -1.0}, r"`point_lr` to be a positive finite number, but got -1\.0"),
        ({"point_weight_decay": -0.1}, r"`point_weight_decay` to be a non-negative finite number, but got -0\.1"),
        ({"betas": (0.9, 1.0)}, r"`betas` to be two numbers .* but got \(0\.9, 1\.0\)"),
        ({"betas": 0.9}, r"`betas` to be two numbers .* but got 0\.9"),
        ({"rescale_lr": 1}, r"`rescale_lr` to be True or False, but got 1"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        cb.NaturalGradient(**settings)
