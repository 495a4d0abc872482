"""Predictions of the last-layer Laplace approximation, against numerical integration and many samples."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.posterior.laplace_cases import KINDS, WIDE, Net, covariance, data, fitted
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import (
    InvalidArgumentError,
)


def logit_covariance(posterior: cb.LastLayerLaplace, net: Net, x: Tensor) -> Tensor:
    """J Σ Jᵀ with the Jacobian by hand."""
    features, classes = net.features(x), net.head.out_features
    rows = []
    for phi in features:
        weight = torch.stack([torch.kron(unit, phi[:5]) for unit in torch.eye(classes, dtype=WIDE)])
        jacobian = torch.cat([weight, torch.eye(classes, dtype=WIDE)], 1)
        rows.append(jacobian @ covariance(posterior) @ jacobian.T)
    return torch.stack(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_two_classes_in_closed_form_are_the_integral_up_to_the_probit_approximation(kind: str) -> None:
    net, x = Net(2).to(WIDE), data(30)[0]
    posterior = fitted(net, data(20, 2), 0.5, covariance=kind)
    difference = torch.tensor([1.0, -1.0], dtype=WIDE)
    mean = net.eval()(x).detach() @ difference
    std = (difference @ logit_covariance(posterior, net, x) @ difference).sqrt()
    grid = torch.linspace(-9, 9, 4001, dtype=WIDE)
    density = torch.distributions.Normal(0.0, 1.0).log_prob(grid).exp()
    integral = torch.trapezoid((mean[:, None] + std[:, None] * grid).sigmoid() * density, grid)
    closed = cb.predict(posterior, x, samples="closed-form").probs[:, 0]
    mackay = (mean / (1 + math.pi / 8 * std.square()).sqrt()).sigmoid()
    torch.testing.assert_close(closed, mackay)
    torch.testing.assert_close(closed, integral, atol=0.02, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_closed_form_is_near_many_samples(kind: str) -> None:
    net, x = Net(4).to(WIDE), data(50)[0]
    with torch.no_grad():
        net.head.weight.mul_(5)
    posterior = fitted(net, data(40, 4), 0.1, covariance=kind)
    sampled = cb.predict(posterior, x, samples=2000).probs
    closed = cb.predict(posterior, x, samples="closed-form", batch_size=9).probs
    plain = cb.predict(posterior, x, samples="mean").probs
    torch.testing.assert_close(plain, net.eval()(x).softmax(-1).detach())
    assert float((closed - sampled).abs().max()) < 0.1
    assert float((closed - sampled).abs().mean()) < 0.5 * float((plain - sampled).abs().mean())
    torch.testing.assert_close(closed, cb.predict(posterior, x, samples="closed-form").probs)


def test_adding_a_number_to_all_logits_changes_nothing() -> None:
    net, x = Net().to(WIDE), data(30)[0]
    other = copy.deepcopy(net)
    with torch.no_grad():
        other.head.bias.add_(100)
    first, second = (cb.predict(fitted(n, (x, data(30)[1])), x, samples="closed-form").probs for n in (net, other))
    torch.testing.assert_close(first, second)


def test_sampled_prediction_runs_the_backbone_once_and_agrees_with_whole_networks() -> None:
    posterior, x = fitted(), data(10)[0]
    runs: Any = posterior.structure()
    before = runs.runs
    predictive = cb.predict(posterior, x, samples=50, keep_samples=True)
    assert runs.runs == before + 1
    assert predictive.samples is not None
    assert float(predictive.epistemic.min()) > 0
    with torch.no_grad(), posterior.evaluating():
        from calibayes.randomness import generator_for

        vectors = posterior.draw(generator_for(torch.device("cpu"), 0, "predict", 3))
        torch.testing.assert_close(predictive.samples[3], posterior.call(vectors, x).softmax(-1))


def test_before_it_is_fitted_the_closed_form_is_the_network() -> None:
    posterior, x = cb.LastLayerLaplace(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))), torch.randn(5, 4)
    closed, mean = (cb.predict(posterior, x, samples=samples).probs for samples in ("closed-form", "mean"))
    assert torch.equal(closed, mean)


def test_other_posteriors_have_no_closed_form() -> None:
    with pytest.raises(InvalidArgumentError, match="MeanField has no closed-form"):
        cb.predict(cb.MeanField(nn.Linear(4, 3)), torch.randn(2, 4), samples="closed-form")


@pytest.mark.parametrize("kind", KINDS)
def test_types(kind: str) -> None:
    x, y = data(dtype=torch.float32)
    posterior = fitted(Net(), (x, y), 0.1, covariance=kind)
    expected = cb.predict(posterior, x, samples="closed-form").probs
    wide = copy.deepcopy(posterior).double()
    torch.testing.assert_close(cb.predict(wide, x.double(), samples="closed-form").probs.float(), expected)
    half = copy.deepcopy(posterior).to(torch.bfloat16)
    assert (half.group.curvature.eigenvalues.dtype, half.group.mu.dtype) == (torch.float32, torch.bfloat16)
    torch.testing.assert_close(cb.predict(half, x.bfloat16(), samples="closed-form").probs, expected, atol=0.02, rtol=0)
    assert cb.predict(half, x.bfloat16(), samples=3).probs.isfinite().all()
    assert posterior.prior_precision == wide.prior_precision == half.prior_precision == 0.1
    halved = fitted(Net().to(torch.bfloat16), (x.bfloat16(), y))
    assert halved.group.curvature.eigenvalues.dtype == torch.float32


def test_an_ensemble_of_them(tmp_path: Path) -> None:
    x, y = data()
    members = [fitted(Net().to(WIDE), (x, y)) for _ in range(3)]
    ensemble = cb.Ensemble(members)
    for samples in (6, "closed-form", "mean"):
        each = [cb.predict(member, x, samples=2 if samples == 6 else samples).probs for member in members]
        together = cb.predict(ensemble, x, samples=samples).probs
        if samples != 6:  # members have seeds of their own
            torch.testing.assert_close(together, torch.stack(each).mean(0))
    cb.save(ensemble, tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors", Net().to(WIDE))
    assert torch.equal(cb.predict(loaded, x, samples=6).probs, cb.predict(ensemble, x, samples=6).probs)


def test_closed_form_of_an_ensemble_with_points() -> None:
    net, (x, y) = Net(), data(dtype=torch.float32)
    laplace, point = cb.LastLayerLaplace.from_point(net, (x, y), 1.0), cb.Point(Net()).eval()
    result = cb.predict(cb.Ensemble([laplace, point]), x, samples="closed-form").probs
    parts = [cb.predict(laplace, x, samples="closed-form").probs, cb.predict(point, x).probs]
    torch.testing.assert_close(result.double(), (parts[0].double() + parts[1].double()) / 2)
