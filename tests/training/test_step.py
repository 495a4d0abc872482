"""One step of Algorithm 1 against independent computations."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import calibayes as cb
from calibayes.posterior import Posterior
from calibayes.randomness import generator_for

Factory = Callable[[Any], torch.optim.Optimizer]


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)).double()


def data(n: int = 60) -> tuple[Tensor, Tensor]:
    x = torch.randn(n, 6, dtype=torch.float64)
    return x, (x[:, :4] + 0.7 * torch.randn(n, 4, dtype=torch.float64)).argmax(-1)


def weights(posterior: Posterior) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in posterior.parameters()])


@pytest.mark.parametrize(
    "factory",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.Adam(p, lr=0.01),
        lambda p: torch.optim.RMSprop(p, lr=0.002),
        lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    ],
)
def test_point_equals_a_plain_training_loop_step_for_step(factory: Factory) -> None:
    net, (x, y) = mlp(), data()
    plain = copy.deepcopy(net)
    optimizer = factory(plain.parameters())
    posterior = cb.Point(net)
    histories = []
    for epochs in (1, 3):
        posterior = cb.Point(net)
        cb.fit(posterior, (x, y), cb.Objective(lam=0.0), optimizer=factory, epochs=epochs, batch_size=25, seed=3)
        histories.append(posterior)
    for epoch in range(3):
        order = torch.randperm(len(y), generator=generator_for(torch.device("cpu"), 3, "shuffle", epoch))
        for index in order.tensor_split(-(-len(y) // 25)):
            optimizer.zero_grad()
            F.cross_entropy(plain(x[index]), y[index]).backward()
            optimizer.step()
        if epoch in (0, 2):
            trained = histories[0 if epoch == 0 else 1].mean()
            for name, parameter in plain.named_parameters():
                torch.testing.assert_close(trained[name], parameter, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("lam_scale", ["paper", "mean"])
@pytest.mark.parametrize("samples", [1, 3])
def test_one_sgd_step_follows_the_equation(samples: int, lam_scale: Any) -> None:
    """φ ← φ − γ/|B|·(1/R Σ_r ∇[Σ CE + λ AECE] + β |B|/|D| ∇KL), by plain autograd through torch.distributions."""
    net, (x, y) = mlp(), data(40)
    objective = cb.Objective(lam=5.0, beta=0.3, calibration=cb.WMMCE(), lam_scale=lam_scale)
    posterior = cb.MeanField(net, prior_std=0.2, init_std=0.1)
    mu, rho = (v.detach().clone().requires_grad_() for v in (posterior.mu, posterior.rho))
    names = [name for name, _ in net.named_parameters()]
    shapes = [p.shape for p in net.parameters()]
    loss = torch.zeros((), dtype=torch.float64)
    for r in range(samples):
        noise = torch.randn(mu.shape, generator=generator_for(torch.device("cpu"), 7, "noise", 0, 0, r), dtype=mu.dtype)
        theta = mu + rho.exp() * noise
        parts = theta.split([s.numel() for s in shapes])
        values = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}
        logits = torch.func.functional_call(net, values, (x,))
        aece = cb.calibration.wmmce(logits.softmax(-1), y)
        loss = loss + (F.cross_entropy(logits, y) + (5.0 / 40 if lam_scale == "paper" else 5.0) * aece) / samples
    prior = torch.distributions.Normal(torch.zeros_like(mu), torch.full_like(mu, 0.2))
    kl = torch.distributions.kl_divergence(torch.distributions.Normal(mu, rho.exp()), prior).sum()
    (loss + 0.3 / 40 * kl).backward()
    assert mu.grad is not None
    assert rho.grad is not None

    history = cb.fit(
        posterior,
        (x, y),
        objective,
        optimizer=lambda p: torch.optim.SGD(p, lr=1.0),
        epochs=1,
        batch_size=40,
        samples=samples,
        seed=7,
    )
    torch.testing.assert_close(posterior.mu, mu - mu.grad, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(posterior.rho, rho - rho.grad, rtol=1e-10, atol=1e-12)
    assert history.steps[0].total == pytest.approx(float((loss + 0.3 / 40 * kl).detach()), rel=1e-10)
    assert history.steps[0].kl == pytest.approx(float(kl.detach()), rel=1e-10)


def test_no_weight_on_the_calibration_term_is_no_calibration_term_to_the_bit() -> None:
    net, train = mlp(), data()
    trained = []
    for objective in (cb.Objective(lam=0.0, calibration=cb.DECE()), cb.Objective(lam=lambda step: 0.0)):
        posterior = cb.MeanField(net)
        cb.fit(posterior, train, objective, epochs=2, batch_size=16)
        trained.append(weights(posterior))
    assert torch.equal(*trained)


def test_a_vanishing_width_is_a_point() -> None:
    net, train = mlp(), data()
    point, narrow = cb.Point(net), cb.MeanField(net, init_std=1e-30)
    sgd, objective = partial(torch.optim.SGD, lr=0.1), cb.Objective(lam=10.0, beta=0.0)
    for posterior in (point, narrow):
        cb.fit(posterior, train, objective, optimizer=sgd, epochs=3, batch_size=16)
    torch.testing.assert_close(narrow.mu.detach(), weights(point), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scheme", cb.SCHEMES)
@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("size", [7, 16, 1000])
def test_micro_batches_do_not_change_the_result(scheme: str, held_out: bool, size: int) -> None:
    net, train, calibration = mlp(), data(), data(30)
    results = []
    for micro in (None, size):
        posterior = cb.MeanField(net) if scheme.endswith("bnn") else cb.Point(net)
        history = cb.fit(
            posterior,
            train,
            cb.Objective(lam=10.0 if scheme.startswith("ca") else 0.0),
            epochs=2,
            batch_size=32,
            samples=2,
            micro_batch_size=micro,
            calibration_data=calibration if held_out else None,
        )
        results.append((weights(posterior), torch.tensor(history.steps, dtype=torch.float64)))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-9, atol=1e-10)


def test_both_passes_over_micro_batches_see_the_same_dropout() -> None:
    seen: list[Tensor] = []

    class Recording(cb.MMCE):
        def scores(self, probs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
            r, c = super().scores(probs, targets)
            seen.append(r.detach().clone())
            return r, c

    net = nn.Sequential(nn.Linear(6, 32), nn.Dropout(0.5), nn.Linear(32, 4)).double()
    cb.fit(cb.Point(net), data(32), cb.Objective(calibration=Recording()), epochs=1, batch_size=32, micro_batch_size=16)
    assert len(seen) == 4
    assert torch.equal(seen[0], seen[2])
    assert torch.equal(seen[1], seen[3])
    assert not torch.equal(seen[0], seen[1])


def test_the_held_out_term_sees_held_out_examples_and_leaves_batch_norm_alone() -> None:
    seen: list[Tensor] = []

    class Recording(cb.WMMCE):
        def scores(self, probs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
            seen.append(targets)
            return super().scores(probs, targets)

    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)).double()
    x, y = data(40)
    held_out = (data(40)[0] + 100, torch.full((40,), 3))
    averages = []
    for calibration in (None, held_out):
        posterior = cb.MeanField(net)
        cb.fit(
            posterior,
            (x, y),
            cb.Objective(lam=1e-9 if calibration else 0.0, calibration=Recording()),
            epochs=1,
            batch_size=20,
            samples=2,
            calibration_data=calibration,
        )
        averages.append(posterior.buffer_values()["1.running_mean"])
    assert len(seen) == 4  # two steps of two samples
    assert all(torch.equal(targets, torch.full((20,), 3)) for targets in seen)
    torch.testing.assert_close(averages[0], averages[1], rtol=1e-6, atol=1e-6)


def test_clipping_bounds_the_update() -> None:
    posterior = cb.MeanField(mlp())
    before = weights(posterior)
    cb.fit(
        posterior,
        data(),
        cb.Objective(beta=100.0),
        optimizer=lambda p: torch.optim.SGD(p, lr=1.0),
        epochs=1,
        batch_size=60,
        clip_norm=0.01,
    )
    assert float((weights(posterior) - before).norm()) == pytest.approx(0.01, rel=1e-4)


def test_bfloat16_training_follows_full_precision() -> None:
    net = mlp().float()
    x, y = data(200)
    losses: dict[Any, list[float]] = {}

    def sharp(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, lr=0.02)

    for precision in (None, "bfloat16"):
        posterior = cb.MeanField(net)
        history = cb.fit(posterior, (x.float(), y), cb.Objective(), optimizer=sharp, epochs=20, precision=precision)
        losses[precision] = [row["cross_entropy"] for row in history.epochs]
        assert posterior.mu.dtype == torch.float32
    assert losses[None] != losses["bfloat16"]
    assert losses["bfloat16"][-1] == pytest.approx(losses[None][-1], rel=0.02)
    assert losses["bfloat16"][-1] < 0.8 * losses["bfloat16"][0]
