"""Settings and posteriors that natural gradients reject."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.training.natural import BATCH, data, mlp, posterior_of

import calibayes as cb
from calibayes.errors import InvalidArgumentError, OptimizerError


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
