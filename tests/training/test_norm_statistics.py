"""Running statistics for averaged weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.training.toy import data
from torch import nn
from torch.optim.swa_utils import update_bn

import calibayes as cb
from calibayes.data.sources import as_source
from calibayes.randomness import derived_seed
from calibayes.training.norm_statistics import norm_statistics

X, Y = data(48)


@pytest.mark.parametrize("kind", [cb.Point, cb.MeanField])
def test_batch_norm_statistics_are_those_of_update_bn(kind: Any) -> None:
    posterior = kind(nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8, momentum=0.3), nn.ReLU(), nn.Linear(8, 3)))
    cb.fit(posterior, (X, Y), cb.Objective(), averaging=cb.EMA(0.9), epochs=3, batch_size=10, seed=3)
    oracle = posterior.network()
    batches = as_source((X, Y), 10, "train").epoch(derived_seed(3, "norm statistics"), 0)
    update_bn([batch.inputs for batch in batches], oracle)
    for name, value in oracle.named_buffers():
        torch.testing.assert_close(posterior.buffer_values()[name], value)
    assert int(oracle.get_buffer("1.num_batches_tracked")) == 5
    assert posterior.structure()[1].momentum == 0.3


def test_dropout_before_a_norm_is_on_and_seeded() -> None:
    net = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(5), nn.Linear(5, 3))
    posterior = cb.Point(net).train()
    source = as_source((X, Y), 16, "train")
    first, again, other = (norm_statistics(posterior, source, seed) for seed in (0, 0, 1))
    assert all(torch.equal(value, again[name]) for name, value in first.items())
    assert not torch.equal(first["1.running_var"], other["1.running_var"])
    assert bool((first["1.running_var"] > 1.3 * X.var(0)).all())  # twice that of the inputs, but for chance
    assert torch.equal(posterior.buffer_values()["1.running_var"], torch.ones(5))


def test_micro_batches_count_as_batches() -> None:
    posterior = cb.Point(nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3))).train()
    found = norm_statistics(posterior, as_source((X, Y), 48, "train"), 0, micro_batch_size=20)
    assert int(found["0.num_batches_tracked"]) == 3
    torch.testing.assert_close(found["0.running_mean"], X.mean(0))  # three parts of 16


def test_instance_norms_are_averaged_too_and_synchronised_ones_run_alone() -> None:
    net = nn.Sequential(nn.Unflatten(1, (1, 5)), nn.InstanceNorm1d(1, track_running_stats=True), nn.Flatten())
    posterior = cb.Point(nn.Sequential(nn.SyncBatchNorm(5), net, nn.Linear(5, 3))).train()
    found = norm_statistics(posterior, as_source((X, Y), 12, "train"), 0)
    torch.testing.assert_close(found["0.running_mean"], X.mean(0))
    batches = list(as_source((X, Y), 12, "train").epoch(derived_seed(0, "norm statistics"), 0))
    normed = torch.cat([nn.functional.batch_norm(batch.inputs, None, None, training=True) for batch in batches])
    torch.testing.assert_close(found["1.1.running_mean"], normed.mean().reshape(1), rtol=1e-4, atol=1e-6)


def test_frozen_norms_and_those_without_statistics_are_left_alone() -> None:
    frozen = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3))
    frozen[0].eval()
    for net in (frozen, nn.Sequential(nn.BatchNorm1d(5, track_running_stats=False), nn.Linear(5, 3)), nn.Linear(5, 3)):
        assert norm_statistics(cb.Point(net).train(), None, 0) == {}  # type: ignore[arg-type]  # no data are read
    posterior = cb.Point(frozen)
    cb.fit(posterior, (X, Y), cb.Objective(), averaging=cb.EMA(0.9), epochs=2, validation=data(40, seed=5))
    assert torch.equal(posterior.buffer_values()["0.running_var"], torch.ones(5))
