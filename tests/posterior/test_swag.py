"""SWAG: mean, variances and covariances of the weights that training went through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError

DATA = torch.randn(48, 3, generator=torch.Generator().manual_seed(1)).double(), torch.arange(48) % 2


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(3, 2).double()


def deep() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Dropout(0.2), nn.Linear(5, 2)).double()


def fit(posterior: cb.Posterior, epochs: int = 12, **settings: Any) -> cb.Posterior:
    def optimizer(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.5)

    cb.fit(posterior, DATA, cb.Objective(), optimizer=optimizer, epochs=epochs, batch_size=16, seed=5, **settings)
    return posterior


def trajectory(net: nn.Module, epochs: int = 12) -> npt.NDArray[np.float64]:
    """The weights of a point after each epoch, ``[epochs, N]``."""
    weights: list[Tensor] = []

    def look(posterior: cb.Posterior, epoch: int) -> None:
        weights.append(torch.cat([p.detach().reshape(-1) for p in posterior.parameters()]))

    fit(cb.Point(net), epochs, on_epoch=look)
    return torch.stack(weights).numpy()


def moments(path: npt.NDArray[np.float64], rank: int, scale: float) -> tuple[npt.NDArray[np.float64], ...]:
    """Mean and covariance of algorithm 1 of the paper, with a scale in the place of its ½."""
    means = np.stack([path[: i + 1].mean(0) for i in range(len(path))])
    covariance = np.diag((path**2).mean(0) - means[-1] ** 2)
    if rank:
        deviations = (path - means)[-rank:]
        covariance += deviations.T @ deviations / (len(deviations) - 1)
    return means[-1], scale * covariance


def draws(posterior: cb.SWAG, count: int) -> npt.NDArray[np.float64]:
    samples = posterior.sample(count, generator=torch.Generator().manual_seed(0))
    return torch.cat([w.reshape(count, -1) for w in samples.values()], 1).detach().numpy()


@pytest.mark.parametrize(("rank", "scale"), [(20, 0.5), (2, 2.0), (0, 1.0)])
def test_samples_have_the_moments_of_the_trajectory(rank: int, scale: float) -> None:
    posterior = cb.SWAG(network(), start_epoch=4, rank=rank, scale=scale)
    fit(posterior)
    mean, covariance = moments(trajectory(network())[3:], rank, scale)
    assert posterior.collected == 9
    np.testing.assert_allclose(posterior.mean()["weight"].numpy().ravel(), mean[:6], rtol=1e-12)
    count = 20000
    drawn = draws(posterior, count)
    width = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(drawn.mean(0) - mean) < 5 * width / np.sqrt(count))
    # The standard error of a covariance of Gaussians: √((σ_ij² + σ_ii σ_jj)/n).
    error = np.sqrt((covariance**2 + np.outer(width**2, width**2)) / count)
    assert np.all(np.abs(np.cov(drawn.T) - covariance) < 5 * error)
    if rank == 0:
        assert posterior.groups[0].state_dict().keys() == {
            *("theta", "average", "collected", "epochs", "steps", "first", "squares"),
        }


def test_variances_survive_large_weights_and_single_precision() -> None:
    group = cb.SWAG(nn.Linear(2, 2), start_epoch=1).groups[0]
    offsets = torch.randn(50, 6)
    for offset in offsets:
        with torch.no_grad():
            group.get_parameter("theta").copy_(offset + 1000)
        group.after_epoch()
    expected = (offsets + 1000).double().var(0, correction=0)
    torch.testing.assert_close(group.variance().double(), expected, rtol=1e-3, atol=0)  # type: ignore[operator]


def test_training_is_that_of_a_point_and_draws_the_trained_weights() -> None:
    posterior, point = cb.SWAG(deep(), start_epoch=2, where="4.*"), cb.Point(deep())
    fit(posterior, 5)
    fit(point, 5)
    posterior.train()
    for name, value in point.mean().items():
        assert torch.equal(posterior.mean()[name], value)
    assert torch.equal(posterior.draw(None)[0], posterior.groups[0].get_parameter("theta"))


def test_before_anything_is_collected_it_is_a_point() -> None:
    posterior, point = cb.SWAG(network(), start_epoch=9).eval(), cb.Point(network())
    assert not posterior.random
    assert not posterior.needs_statistics
    assert torch.equal(cb.predict(posterior, DATA[0]).probs, cb.predict(point, DATA[0]).probs)
    posterior.train()
    for _ in range(8):
        posterior.after_epoch()
    assert posterior.collected == 0
    posterior.after_epoch()
    posterior.eval()
    assert (posterior.collected, posterior.random, posterior.needs_statistics) == (1, False, True)
    one, other = draws(posterior, 2)
    assert np.array_equal(one, other)


@pytest.mark.parametrize(("every", "collected"), [("step", 9), (2, 4), (4, 2), ("epoch", 3)])
def test_it_can_collect_after_steps(every: Any, collected: int) -> None:
    posterior = cb.SWAG(network(), start_epoch=4, every=every)
    fit(posterior, 6)  # three steps an epoch
    assert posterior.collected == collected


def test_points_are_averaged_without_a_distribution() -> None:
    posterior = cb.SWAG(deep(), start_epoch=2)
    fit(posterior, 6)
    points: list[Tensor] = []
    fit(cb.Point(deep()), 6, on_epoch=lambda p, _: points.append(p.mean()["1.weight"].detach().clone()))
    torch.testing.assert_close(posterior.mean()["1.weight"], torch.stack(points[1:]).mean(0))
    samples = posterior.sample(4)
    assert torch.equal(samples["1.weight"][0], samples["1.weight"][3])
    assert not torch.equal(samples["0.weight"][0], samples["0.weight"][3])
    names = [group["name"] for group in posterior.parameter_groups()]
    assert len(set(names)) == len(names)


def test_batch_norms_have_the_statistics_of_the_average() -> None:
    posterior = cb.SWAG(deep(), start_epoch=2)
    seen: list[Tensor] = []
    fit(posterior, 6, on_epoch=lambda p, _: seen.append(p.buffer_values()["1.running_mean"].clone()))
    weights = posterior.mean()
    expected = (DATA[0] @ weights["0.weight"].T + weights["0.bias"]).mean(0)  # batches are of the same size
    torch.testing.assert_close(posterior.buffer_values()["1.running_mean"], expected)
    torch.testing.assert_close(seen[-1], expected)  # whoever looks at it in training sees them too


@pytest.mark.parametrize("every", ["epoch", 2])
def test_it_resumes_with_the_same_bits(tmp_path: Path, every: Any) -> None:
    whole = fit(cb.SWAG(deep(), start_epoch=2, every=every, rank=3), 6, validation=DATA)
    for epochs in (3, 6):
        parts = fit(
            cb.SWAG(deep(), start_epoch=2, every=every, rank=3),
            epochs,
            validation=DATA,
            checkpoint=tmp_path,
            checkpoint_seconds=0.0,
        )
    for name, value in whole.state_dict().items():
        assert torch.equal(parts.state_dict()[name], value), name


def test_files_hold_all_of_it(tmp_path: Path) -> None:
    posterior = fit(cb.SWAG(deep(), start_epoch=2, every=2, rank=3, scale=0.7, where="4.*"), 6)
    cb.save(posterior, tmp_path / "m.safetensors")
    loaded = cb.load(tmp_path / "m.safetensors", deep())
    assert loaded.config() == posterior.config()
    one, other = (cb.predict(each, DATA[0], samples=7) for each in (posterior, loaded))
    assert torch.equal(one.probs, other.probs)
    assert float(one.epistemic.max()) > 0


def test_the_audit_says_how_much_was_collected(capsys: pytest.CaptureFixture[str]) -> None:
    posterior = cb.SWAG.from_point(fit(cb.Point(deep()), 2), start_epoch=1)
    fit(posterior, 3)
    posterior.audit()
    assert "Sets of weights collected: 3." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start_epoch": 0}, "`start_epoch` to be a positive integer, but got 0"),
        ({"every": "batch"}, "`every` to be 'epoch', 'step' or a step count, but got 'batch'"),
        ({"every": 0}, "`every` to be a positive integer, but got 0"),
        ({"rank": 1}, "`rank` to be 0 .* or at least 2, but got 1"),
        ({"rank": -1}, "`rank` to be an integer of at least 0, but got -1"),
        ({"scale": 0.0}, "`scale` to be a positive finite number, but got 0.0"),
    ],
)
def test_refused_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        cb.SWAG(network(), **settings)


def test_training_that_collects_too_little_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"from epoch 11 on .* ends with `epochs=11`. Use a smaller `start_epoch`"):
        fit(cb.SWAG(network(), start_epoch=11), 11)
    fit(cb.SWAG(network(), start_epoch=11, every="step"), 11)
    trained = fit(cb.SWAG(network(), start_epoch=11), 12)
    fit(trained, 1)  # there are two already
