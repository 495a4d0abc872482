"""A mean field that is trained as a point first: the same steps, and no scores before the distribution begins."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(80, 5, generator=generator)
    return x, x[:, :3].argmax(-1)


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 3))


def fitted(posterior: cb.Posterior, epochs: int, **others: Any) -> cb.History:
    return cb.fit(posterior, data(), cb.Objective(lam=3.0), epochs=epochs, batch_size=20, seed=1, **others)


def test_the_first_epochs_are_those_of_a_point() -> None:
    point, warm = cb.Point(net()), cb.MeanField(net(), epochs_before=3, init_std=0.02)
    start = warm.rho.detach().clone()
    expected, found = fitted(point, 3), fitted(warm, 3)
    torch.testing.assert_close(warm.mu.detach(), torch.cat([w.detach().reshape(-1) for w in point.mean().values()]))
    assert torch.equal(warm.rho, start)
    assert [row["cross_entropy"] for row in found.epochs] == pytest.approx([row["cross_entropy"] for row in expected.epochs])
    assert all(row["kl"] == 0 for row in found.epochs)


def test_a_share_of_the_epochs_comes_first_and_the_distribution_after_it() -> None:
    warm = cb.MeanField(net(), epochs_before=0.5, init_std=0.02)
    history = fitted(warm, 6)
    assert [row["kl"] > 0 for row in history.epochs] == [False] * 3 + [True] * 3
    again = fitted(warm, 2)  # there was a point phase already
    assert all(row["kl"] > 0 for row in again.epochs)
    assert not torch.equal(*cb.predict(warm, data()[0][:4], samples=2, keep_samples=True).samples)  # type: ignore[misc]


def test_a_large_share_leaves_an_epoch_for_the_distribution() -> None:
    assert fitted(cb.MeanField(net(), epochs_before=0.9), 3).epochs[-1]["kl"] > 0


def test_validation_sees_the_point_that_is_trained_and_early_stopping_waits() -> None:
    warm, point = cb.MeanField(net(), epochs_before=4, init_std=0.5), cb.Point(net())
    x, y = data()
    wrong = x, (y + 1) % 3  # what is learned makes these worse: the first epoch would be the best
    expected = fitted(point, 3, validation=wrong)
    history = fitted(warm, 9, validation=wrong, early_stopping=1)
    assert [row["val_nll"] for row in history.epochs[:3]] == pytest.approx([row["val_nll"] for row in expected.epochs])
    assert history.best_epoch is not None
    assert history.best_epoch >= 4


def test_a_point_phase_that_would_not_end_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="first 5 epochs are trained as a point"):
        fitted(cb.MeanField(net(), epochs_before=5), 3)
    with pytest.raises(InvalidArgumentError, match=r"between 0 and 1, but got 1\.5"):
        cb.MeanField(net(), epochs_before=1.5)
    with pytest.raises(InvalidArgumentError, match="`epochs_before`"):
        cb.MeanField(net(), epochs_before=-1)
