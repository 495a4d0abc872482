"""Outsider scores against formulas and scikit-learn, on networks and posteriors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.covariance import LedoitWolf
from sklearn.neighbors import NearestNeighbors
from torch import Tensor, nn
from torch.utils.data import TensorDataset

import calibayes as cb
from calibayes.acting import Energy, FeatureDistance, energy_scores, features_of, outsider_scores
from calibayes.errors import DataError, InvalidArgumentError, UnsupportedNetworkError


def network(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 3))


def inputs(n: int = 50, seed: int = 0) -> Tensor:
    return torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))


def test_scores_of_predictions() -> None:
    ensemble = cb.Ensemble([cb.MeanField(network(seed), init_std=0.3) for seed in range(3)])
    predictive = cb.predict(ensemble, inputs(), samples=12)
    probs = predictive.probs.double()
    assert torch.allclose(outsider_scores(predictive), 1 - probs.amax(-1))
    assert torch.equal(outsider_scores(predictive), outsider_scores(predictive.probs.numpy()))
    assert torch.allclose(outsider_scores(probs, "entropy"), -(probs * probs.log()).sum(-1))
    assert torch.allclose(outsider_scores(predictive, "epistemic"), predictive.epistemic.double())
    assert torch.allclose(outsider_scores(predictive, "between"), predictive.between.double())
    assert bool((outsider_scores(predictive, "between") > 0).all())


def test_energy_is_the_log_partition_of_logits() -> None:
    logits = 3 * torch.randn(20, 5, dtype=torch.float64)
    for temperature in (1.0, 2.5):
        expected = [-temperature * np.log(np.exp(row / temperature).sum()) for row in logits.numpy()]
        assert energy_scores(logits, temperature).numpy() == pytest.approx(expected)
    assert torch.allclose(energy_scores(logits + 7), energy_scores(logits) - 7)  # what probabilities do not know


def test_energy_of_a_posterior_is_that_of_its_networks_at_the_mean_weights() -> None:
    nets = [network(seed).eval() for seed in range(2)]
    x = inputs(700)
    one = Energy.fit(cb.Point(nets[0]), temperature=2.0).scores(x)
    assert torch.allclose(one, energy_scores(nets[0](x), 2.0), atol=1e-5)
    both = Energy.fit(cb.Ensemble([cb.MeanField(net) for net in nets])).scores(TensorDataset(x, torch.zeros(700)))
    assert torch.allclose(both, torch.stack([energy_scores(net(x)) for net in nets]).mean(0), atol=1e-5)


def test_features_are_what_reaches_the_last_layer() -> None:
    nets = [network(seed).eval() for seed in range(2)]
    x = inputs(600)
    expected = torch.cat([net[:-1](x) for net in nets], -1).double()
    assert torch.allclose(features_of(cb.Ensemble([cb.Point(net) for net in nets]), x, batch_size=100), expected, atol=1e-6)
    posterior = cb.MeanField(network().train(), init_std=0.1)
    assert torch.allclose(features_of(posterior, x), expected[:, :8], atol=1e-6)  # at the mean, in evaluation mode
    assert posterior.training


@pytest.mark.parametrize("kind", [cb.Point, cb.MeanField, cb.MCDropout, cb.SWAG, cb.LastLayerLaplace])
def test_every_posterior_has_features_and_an_energy(kind: Any) -> None:
    net = network().eval()
    x = inputs(40)
    posterior = kind.from_point(net, (x, torch.arange(40) % 3)) if kind is cb.LastLayerLaplace else kind(net)
    assert torch.allclose(features_of(posterior, x), net[:-1](x).double(), atol=1e-5)
    assert torch.allclose(Energy.fit(posterior).scores(x), energy_scores(net(x)), atol=1e-4)


def test_networks_without_a_last_linear_layer_are_named() -> None:
    with pytest.raises(UnsupportedNetworkError, match=r"not that of an nn.Linear"):
        features_of(cb.Point(nn.Sequential(nn.Linear(4, 3), nn.Tanh())), inputs())
    with pytest.raises(UnsupportedNetworkError, match=r"not that of an nn.Linear: none runs"):
        features_of(cb.Point(nn.Sequential(nn.Conv1d(4, 3, 1), nn.Flatten())), inputs()[..., None])
    with pytest.raises(InvalidArgumentError, match="Wrap it: `Point"):
        features_of(network(), inputs())  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no examples"):
        features_of(cb.Point(network()), inputs(0))


def test_mahalanobis_equals_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(3, size=60)
    old, new = generator.normal(size=(60, 80)) + labels[:, None], generator.normal(size=(10, 80))  # more features than rows
    distance = FeatureDistance.from_features(old, labels, method="mahalanobis")
    means = np.stack([old[labels == k].mean(0) for k in range(3)])
    covariance = LedoitWolf(assume_centered=True).fit(old - means[labels])
    expected = np.sqrt(np.min([covariance.mahalanobis(new - mean) for mean in means], 0))
    assert distance.scores_of_features(new).numpy() == pytest.approx(expected, rel=1e-8)
    alone = FeatureDistance.from_features(old, method="mahalanobis").scores_of_features(new)
    assert alone.numpy() == pytest.approx(np.sqrt(LedoitWolf().fit(old).mahalanobis(new)), rel=1e-8)


def test_nearest_neighbours_equal_scikit_learn() -> None:
    generator = np.random.default_rng(1)
    old, new = generator.normal(size=(300, 6)), 5 * generator.normal(size=(40, 6))
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (old, new)]
    expected = NearestNeighbors(n_neighbors=7).fit(unit[0]).kneighbors(unit[1])[0][:, -1]
    scores = FeatureDistance.from_features(old, neighbours=7).scores_of_features(new)
    assert scores.numpy() == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("method", ["knn", "mahalanobis"])
def test_outsiders_are_farther_away(method: str) -> None:
    torch.manual_seed(0)
    centres = 4 * torch.eye(4)[:3]
    labels = torch.arange(300) % 3
    x = centres[labels] + 0.5 * torch.randn(300, 4)
    posterior = cb.Point(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)))
    cb.fit(posterior, (x, labels), cb.Objective(lam=0), epochs=20, batch_size=30, progress=False)
    distance = FeatureDistance.fit(posterior, x, labels, method=method)  # type: ignore[arg-type]
    near, far = distance.scores(centres[labels] + 0.5 * torch.randn(300, 4)), distance.scores(4 * torch.randn(200, 4) - 3)
    assert cb.acting.detection(near, far).auroc > 0.85


@pytest.mark.parametrize(("x", "wrong"), [((40, 4), (5, 7)), ((40, 3, 8, 8), (5, 8, 8, 3))])
def test_inputs_of_another_width_are_named(x: tuple[int, ...], wrong: tuple[int, ...]) -> None:
    images = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 3))
    posterior = cb.Point(network() if len(x) == 2 else images)
    distance = FeatureDistance.fit(posterior, torch.randn(x))
    for scores in (distance.scores, Energy.fit(posterior).scores):
        with pytest.raises(
            DataError, match=rf"does not fit inputs of shape {re.escape(str(list(wrong)))}\. Pass inputs of the same"
        ):
            scores(torch.randn(wrong))


def test_neighbours_that_were_not_asked_for_are_as_many_as_there_are() -> None:
    posterior = cb.Point(network())
    assert FeatureDistance.fit(posterior, inputs(1)).neighbours == 1
    assert FeatureDistance.fit(posterior, inputs(1)).scores(inputs(1)) == pytest.approx(0, abs=1e-6)
    assert FeatureDistance.fit(posterior, inputs(300)).neighbours == 10
    with pytest.raises(InvalidArgumentError, match="`neighbours` to be at most 1, but got 10"):
        FeatureDistance.fit(posterior, inputs(1), neighbours=10)


def test_what_is_refused() -> None:
    probs = torch.full((3, 2), 0.5)
    with pytest.raises(InvalidArgumentError, match=r"pass what `calibayes.predict"):
        outsider_scores(probs, "epistemic")
    with pytest.raises(InvalidArgumentError, match="needs a prediction of an `Ensemble`"):
        outsider_scores(cb.predict(cb.MeanField(network()), inputs()), "between")
    with pytest.raises(InvalidArgumentError, match="Unknown `method` 'max'"):
        outsider_scores(probs, "max")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="The energy needs logits"):
        energy_scores(probs)
    with pytest.raises(InvalidArgumentError, match=r"`logits` of shape \[n, K\] with n ≥ 1 and K ≥ 2, but got \[0, 3\]"):
        energy_scores(torch.zeros(0, 3))
    with pytest.raises(InvalidArgumentError, match=r"finite `logits`, but row 1, column 0 is nan\. Look for an overflow"):
        energy_scores(torch.tensor([[1.0, 2.0], [float("nan"), 0.0]]))
    with pytest.raises(InvalidArgumentError, match="`neighbours` to be at most 3"):
        FeatureDistance.from_features(probs, neighbours=4)
    with pytest.raises(InvalidArgumentError, match="no spread"):
        FeatureDistance.from_features(torch.ones(5, 2), method="mahalanobis")
    made = FeatureDistance.from_features(torch.randn(20, 2))
    with pytest.raises(InvalidArgumentError, match="features of 2 columns, but got 3"):
        made.scores_of_features(torch.randn(5, 3))
    with pytest.raises(InvalidArgumentError, match="pass features"):
        made.scores(torch.randn(5, 2))
