"""`fit` with natural gradients: micro-batches, half precision, clipping and resuming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.natural import BATCH, SEED, N, data, flat, mlp, posterior_of
from torch import Tensor

import calibayes as cb
from calibayes.posterior import Posterior


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
