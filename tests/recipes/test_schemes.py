"""A scheme's name gives the posterior and the objective of the paper's table."""

from __future__ import annotations

import pytest
import torch

import calibayes as cb
from calibayes.errors import InvalidArgumentError
from calibayes.recipes import build


@pytest.mark.parametrize("scheme", cb.SCHEMES)
def test_a_scheme_is_a_posterior_and_a_term(scheme: str) -> None:
    posterior, objective = build(scheme, torch.nn.Linear(4, 3), lam=7.0, beta=0.2, prior_std=0.3, init_std=0.04)
    assert isinstance(posterior, cb.MeanField if "bnn" in scheme else cb.Point)
    assert objective.lam == (7.0 if "ca-" in scheme else 0.0)
    assert objective.beta == (0.2 if "bnn" in scheme else 0.0)
    assert isinstance(objective.calibration, cb.WMMCE)
    if isinstance(posterior, cb.MeanField):
        assert posterior.prior_std == 0.3
        torch.testing.assert_close(posterior.rho.exp(), torch.full((15,), 0.04))


def test_all_schemes_start_from_the_same_weights() -> None:
    net, x = torch.nn.Linear(4, 3), torch.randn(5, 4)
    means = [cb.predict(build(scheme, net)[0], x, samples="mean").probs for scheme in cb.SCHEMES]
    for mean in means:
        torch.testing.assert_close(mean, net(x).softmax(-1))


def test_another_measure_can_be_asked_for() -> None:
    assert isinstance(build("ca-fnn", torch.nn.Linear(4, 3), calibration=cb.MMCE())[1].calibration, cb.MMCE)


@pytest.mark.parametrize("scheme", ["FNN", "ca_bnn", ""])
def test_an_unknown_scheme_is_quoted_beside_the_four(scheme: str) -> None:
    with pytest.raises(InvalidArgumentError, match="'fnn', 'bnn', 'ca-fnn', 'ca-bnn'") as caught:
        build(scheme, torch.nn.Linear(4, 3))
    assert repr(scheme) in str(caught.value)


def test_a_calibration_aware_scheme_needs_its_term() -> None:
    with pytest.raises(InvalidArgumentError, match=r"`lam` > 0 for 'ca-bnn', but got 0; without the term it is 'bnn'"):
        build("ca-bnn", torch.nn.Linear(4, 3), lam=0)
