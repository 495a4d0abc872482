"""Networks that are drawn once and kept predict what `predict` does, to the last bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

import calibayes as cb
from calibayes.networks.table_inputs import TableInputs
from calibayes.posterior.drawn_networks import drawn_networks
from calibayes.predictive import predict_networks, samples_for


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)).eval()


def table_net(width: float = 1.0) -> nn.Module:
    rows = width * np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)
    layer = TableInputs(range(5), bins=4).fit(rows)
    return nn.Sequential(layer, nn.Linear(layer.width, 3)).eval()


POSTERIORS: dict[str, Callable[[], cb.Posterior]] = {
    "point": lambda: cb.Point(net()),
    "mean field": lambda: cb.MeanField(net(), init_std=0.3),
    "points": lambda: cb.Ensemble.of(lambda seed: cb.Point(net()), members=3),
    "mixture": lambda: cb.Ensemble.of(lambda seed: cb.MeanField(net(), init_std=0.3), members=2),
    "tables": lambda: cb.Ensemble.of(lambda seed: cb.MeanField(table_net(), init_std=0.3), members=2),
    "other tables": lambda: cb.Ensemble([cb.Point(table_net(width)) for width in (1.0, 2.0, 1.0)] + [cb.Point(net())]),
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


def test_a_fixed_first_layer_that_several_share_runs_once() -> None:
    runs: list[int] = []

    def count(shared: cb.Posterior) -> int:
        networks = drawn_networks(shared, samples_for(shared, 6), 0)
        assert networks is not None
        runs.clear()
        for each in networks:
            next(each.network.children()).register_forward_hook(lambda *_: runs.append(1))
        predict_networks(shared, networks, torch.randn(3, 5))
        return len(runs)

    assert count(POSTERIORS["tables"]()) == 1
    assert count(POSTERIORS["other tables"]()) == 2 + 1
    assert count(POSTERIORS["mixture"]()) == 6


def test_what_cannot_be_kept_is_not() -> None:
    assert drawn_networks(cb.MCDropout(net().train()), 5, 0) is None
    assert drawn_networks(cb.MeanField(net(), where="4.*"), 5, 0) is None
    assert drawn_networks(cb.MeanField(net()), 5, 0, most_bytes=1000) is None
