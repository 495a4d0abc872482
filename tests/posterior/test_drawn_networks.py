"""Networks that are drawn once and kept predict what `predict` does, to the last bit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import calibayes as cb
from calibayes.posterior.drawn_networks import drawn_networks
from calibayes.predictive import predict_networks, samples_for


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)).eval()


POSTERIORS: dict[str, Callable[[], cb.Posterior]] = {
    "point": lambda: cb.Point(net()),
    "mean field": lambda: cb.MeanField(net(), init_std=0.3),
    "points": lambda: cb.Ensemble.of(lambda seed: cb.Point(net()), members=3),
    "mixture": lambda: cb.Ensemble.of(lambda seed: cb.MeanField(net(), init_std=0.3), members=2),
}


@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("rows", [1, 700])
def test_the_same_bits_as_predict(name: str, rows: int) -> None:
    posterior, x = POSTERIORS[name](), torch.randn(rows, 5)
    samples = samples_for(posterior, 7)
    expected = cb.predict(posterior, x, samples=samples, seed=3, dtype=torch.float64)
    networks = drawn_networks(posterior, samples, 3)
    assert networks is not None
    for _ in range(2):
        found = predict_networks(posterior, networks, x, dtype=torch.float64)
        for part in ("probs", "aleatoric", "epistemic", "between"):
            assert torch.equal(getattr(found, part), getattr(expected, part))


def test_a_posterior_in_training_mode_is_drawn_in_evaluation_mode_and_stays_as_it_was() -> None:
    posterior, x = cb.MeanField(net(), init_std=0.3).train(), torch.randn(4, 5)
    networks = drawn_networks(posterior, 3, 0)
    assert networks is not None
    assert posterior.training
    assert not any(part.training for each in networks for part in each.network.modules())
    assert torch.equal(predict_networks(posterior, networks, x).probs, cb.predict(posterior, x, samples=3).probs)


def test_what_cannot_be_kept_is_not() -> None:
    assert drawn_networks(cb.MCDropout(net().train()), 5, 0) is None
    assert drawn_networks(cb.MeanField(net(), where="4.*"), 5, 0) is None
    assert drawn_networks(cb.MeanField(net()), 5, 0, most_bytes=1000) is None
