"""A scheme's name gives the posterior and the objective of the paper's table."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import calibayes as cb
from calibayes.errors import InvalidArgumentError


@pytest.mark.parametrize("scheme", cb.SCHEMES)
def test_a_scheme_is_a_posterior_and_a_term(scheme: str) -> None:
    settings: dict[str, Any] = {"beta": 0.2, "prior_std": 0.3, "init_std": 0.04} if "bnn" in scheme else {}
    settings |= {"lam": 7.0} if "ca-" in scheme else {}
    posterior, objective, _ = cb.build(scheme, torch.nn.Linear(4, 3), **settings)
    assert isinstance(posterior, cb.MeanField if "bnn" in scheme else cb.Point)
    assert objective.lam == (7.0 if "ca-" in scheme else 0.0)
    assert objective.beta == (0.2 if "bnn" in scheme else 0.0)
    assert isinstance(objective.calibration, cb.WMMCE)
    if isinstance(posterior, cb.MeanField):
        assert posterior.prior_std == 0.3
        torch.testing.assert_close(posterior.rho.exp(), torch.full((15,), 0.04))


def test_all_schemes_start_from_the_same_weights() -> None:
    net, x = torch.nn.Linear(4, 3), torch.randn(5, 4)
    means = [cb.predict(cb.build(scheme, net).posterior, x, samples="mean").probs for scheme in cb.SCHEMES]
    for mean in means:
        torch.testing.assert_close(mean, net(x).softmax(-1))


def test_another_measure_can_be_asked_for() -> None:
    plan = cb.build("ca-fnn", torch.nn.Linear(4, 3), calibration=cb.MMCE())
    assert isinstance(plan.objective.calibration, cb.MMCE)


@pytest.mark.parametrize("scheme", ["ca_bnn", ""])
def test_an_unknown_scheme_is_quoted(scheme: str) -> None:
    with pytest.raises(InvalidArgumentError, match=repr(scheme)):
        cb.build(scheme, torch.nn.Linear(4, 3))
