"""Examples that count more than others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import DataError
from calibayes.metrics import nll


def data(n: int = 40) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 5, generator=generator, dtype=torch.float64)
    return x, (x[:, :3] + torch.randn(n, 3, generator=generator, dtype=torch.float64)).argmax(1)


def trained(train: Any, *, lam: float = 0.0, epochs: int = 30, **others: Any) -> tuple[cb.Point, Any]:
    torch.manual_seed(0)
    posterior = cb.Point(nn.Linear(5, 3).double())
    # MMCE, since WMMCE's "one example's worth" is another one when examples are repeated
    objective = cb.Objective(lam=lam, lam_scale="mean", calibration=cb.MMCE(tau_r=0.1, tau_c=0.1))
    history = cb.fit(posterior, train, objective, epochs=epochs, batch_size=1000, **others)
    return posterior, history


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_a_weight_of_two_is_an_example_twice(lam: float) -> None:
    x, y = data()
    weights = torch.ones(40)
    weights[:10] = 2
    weighted, history = trained((x, y, 7 * weights.numpy()), lam=lam)  # only ratios matter
    repeated, expected = trained((torch.cat([x, x[:10]]), torch.cat([y, y[:10]])), lam=lam)
    plain, _ = trained((x, y), lam=lam)
    ours, theirs, others = (posterior.state_dict()["groups.0.theta"] for posterior in (weighted, repeated, plain))
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    assert not torch.allclose(ours, others, atol=1e-3)
    assert history.epochs[-1]["total"] == pytest.approx(expected.epochs[-1]["total"], rel=1e-9)


def test_a_weight_of_zero_is_no_example() -> None:
    x, y = data()
    weights = np.r_[np.zeros(15), np.ones(25)]
    dropped, history = trained((x, y, weights), lam=1.0)
    fewer, _ = trained((x[15:], y[15:]), lam=1.0)
    assert torch.equal(dropped.state_dict()["groups.0.theta"], fewer.state_dict()["groups.0.theta"])
    assert history.steps[0].examples == 25


def test_weights_reach_micro_batches_and_samples_alike() -> None:
    x, y = data()
    weights = torch.linspace(0.1, 2, 40)
    found = []
    for others in ({}, {"micro_batch_size": 7}, {"sample_chunk": 1}):
        torch.manual_seed(0)
        posterior = cb.MeanField(nn.Linear(5, 3).double())
        cb.fit(posterior, (x, y, weights), cb.Objective(lam=10.0), epochs=5, batch_size=20, samples=3, **others)  # type: ignore[arg-type]
        found.append(posterior.state_dict()["groups.0.mu"])
    for each in found[1:]:
        torch.testing.assert_close(each, found[0], rtol=1e-9, atol=1e-9)


def test_validation_counts_with_its_weights() -> None:
    x, y = data()
    weights = torch.linspace(0, 1, 40)
    posterior, history = trained((x, y), validation=(x, y, weights), epochs=1)
    probs = cb.predict(posterior, x).probs
    assert history.epochs[0]["val_nll"] == pytest.approx(nll(probs, y, weights=weights), rel=1e-9)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.ones(39), r"shape \[40\], but have \[39\]"),
        (torch.tensor([1.0] * 39 + [-1.0]), "not negative, but number 39 is -1.0"),
        (torch.tensor([float("nan")] + [1.0] * 39), "number 0 is nan"),
        (torch.zeros(40), "all zero: no example counts"),
    ],
)
def test_bad_weights_are_named(weights: Tensor, message: str) -> None:
    with pytest.raises(DataError, match=message):
        trained((*data(), weights), epochs=1)


def test_a_checkpoint_of_other_weights_is_refused(tmp_path: Any) -> None:
    x, y = data()
    trained((x, y, torch.ones(40)), epochs=1, checkpoint=tmp_path)
    with pytest.raises(cb.errors.CheckpointError, match="data"):
        trained((x, y, torch.linspace(1, 2, 40)), epochs=2, checkpoint=tmp_path)
