"""Averages of the weights: against plain loops, and what sees them."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.toy import data
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import calibayes as cb
from calibayes.errors import CheckpointError, InvalidArgumentError
from calibayes.posterior import Posterior

X, Y = data(48)
VALIDATION = data(40, seed=5)


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.3)


def plain_net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))


def norm_net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))


def trained(posterior: Posterior, averaging: Any = None, **settings: Any) -> cb.History:
    given = {"optimizer": sgd, "epochs": 4, "batch_size": 48, "seed": 3, **settings}
    return cb.fit(posterior, (X, Y), cb.Objective(lam=0.0), averaging=averaging, **given)


def flat(posterior: Posterior) -> Tensor:
    return torch.cat([parameter.detach() for parameter in posterior.parameters()])


def state(posterior: Posterior) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in posterior.state_dict().items()}


def trajectory(make: Any, epochs: int) -> list[Tensor]:
    """The weights at the start and after each step of a training without averaging: full batches, one a step."""
    return [flat(make())] + [_after(make(), k) for k in range(1, epochs + 1)]


def _after(posterior: Posterior, epochs: int) -> Tensor:
    trained(posterior, epochs=epochs)
    return flat(posterior)


def plain_loop(steps: int) -> list[dict[str, Tensor]]:
    """Gradient descent on the whole data set, in PyTorch alone."""
    net = plain_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    seen = [{name: value.detach().clone() for name, value in net.named_parameters()}]
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), Y).backward()
        optimizer.step()
        seen.append({name: value.detach().clone() for name, value in net.named_parameters()})
    return seen


@pytest.mark.parametrize("warm_up", [True, False])
def test_an_ema_is_that_of_a_plain_loop(warm_up: bool) -> None:
    weights = plain_loop(12)
    average = weights[0]
    for step, newest in enumerate(weights[1:], start=1):
        decay = min(0.8, (1 + step) / (10 + step)) if warm_up else 0.8
        average = {name: decay * average[name] + (1 - decay) * newest[name] for name in newest}
    posterior = cb.Point(plain_net())
    trained(posterior, cb.EMA(0.8, warm_up=warm_up), epochs=12)
    for name, value in posterior.mean().items():
        torch.testing.assert_close(value.detach(), average[name], rtol=1e-5, atol=1e-6)
        assert not torch.allclose(value, weights[-1][name], atol=1e-3)


def test_equal_averages_are_means_from_the_start_epoch_on() -> None:
    weights = plain_loop(6)
    for every in ("epoch", "step"):
        posterior = cb.Point(plain_net())
        trained(posterior, cb.EqualAverage(4, every=every), epochs=6)
        for name, value in posterior.mean().items():
            expected = torch.stack([each[name] for each in weights[4:]]).mean(0)
            torch.testing.assert_close(value.detach(), expected, rtol=1e-5, atol=1e-6)


def test_steps_count_apart_from_epochs() -> None:
    weights: list[Tensor] = []
    trained(cb.Point(plain_net()), epochs=3, batch_size=24, on_epoch=lambda p, _: weights.append(flat(p)))
    by_epoch, by_step = cb.Point(plain_net()), cb.Point(plain_net())
    trained(by_epoch, cb.EqualAverage(2), epochs=3, batch_size=24)
    trained(by_step, cb.EqualAverage(2, every="step"), epochs=3, batch_size=24)
    torch.testing.assert_close(flat(by_epoch), torch.stack(weights[1:]).mean(0))
    assert not torch.allclose(flat(by_step), flat(by_epoch))


@pytest.mark.parametrize("make", [lambda: cb.Point(plain_net()), lambda: cb.MeanField(plain_net(), where=["2.*"])])
def test_all_that_is_trained_is_averaged(make: Any) -> None:
    """Also standard deviations, and points beside them."""
    seen = trajectory(make, 4)
    average = seen[0]
    for newest in seen[1:]:
        average = average + 0.5 * (newest - average)
    posterior = make()
    trained(posterior, cb.EMA(0.5, warm_up=False))
    torch.testing.assert_close(flat(posterior), average)


@pytest.mark.parametrize("kind", [cb.Point, cb.MeanField])
def test_a_decay_of_zero_is_no_averaging(kind: Any) -> None:
    without, zero = kind(plain_net()), kind(plain_net())
    first = trained(without, validation=VALIDATION)
    second = trained(zero, cb.EMA(0.0), validation=VALIDATION)
    assert first == second
    assert torch.equal(flat(without), flat(zero))


def test_averaging_does_not_change_the_course_of_training() -> None:
    """The weights, their batch-norm statistics and the global generators are as they were after each look at the average."""
    histories = []
    draws: list[list[float]] = [[], []]
    for index, averaging in enumerate((None, cb.EMA(0.9))):

        def look(_: Posterior, __: int, index: int = index) -> None:
            draws[index].append(float(torch.rand(())))

        posterior = cb.MeanField(norm_net())
        settings: dict[str, Any] = {"batch_size": 16, "validation": VALIDATION, "on_epoch": look}
        histories.append(trained(posterior, averaging, **settings))
    assert histories[0].steps == histories[1].steps
    assert histories[0].epochs != histories[1].epochs
    assert draws[0] == draws[1]
    before = torch.get_rng_state()
    trained(cb.Point(norm_net()), cb.EMA(), validation=VALIDATION)
    assert torch.equal(before, torch.get_rng_state())


def test_validation_and_callback_see_what_the_posterior_ends_with() -> None:
    posterior = cb.MeanField(norm_net())
    seen: list[dict[str, Tensor]] = []
    history = trained(posterior, cb.EMA(0.8), validation=VALIDATION, on_epoch=lambda p, _: seen.append(state(p)))
    assert all(torch.equal(value, seen[-1][name]) for name, value in posterior.state_dict().items())
    probs = cb.predict(posterior, VALIDATION[0], samples=10, seed=3, dtype=torch.float64).probs
    assert history.epochs[-1]["val_nll"] == pytest.approx(cb.metrics.nll(probs, VALIDATION[1]), rel=1e-9)


def test_until_an_equal_average_begins_the_weights_themselves_are_seen() -> None:
    seen: dict[str, list[Tensor]] = {"without": [], "average": []}
    for name, averaging in (("without", None), ("average", cb.EqualAverage(3))):
        trained(cb.Point(norm_net()), averaging, on_epoch=lambda p, _, name=name: seen[name].append(flat(p)))
    same = [torch.equal(*pair) for pair in zip(seen["without"], seen["average"], strict=True)]
    assert same == [True, True, True, False]


def test_early_stopping_restores_the_best_average() -> None:
    posterior = cb.Point(norm_net())
    seen: list[dict[str, Tensor]] = []
    x, wrong = VALIDATION[0], (VALIDATION[1] + 1) % 3  # it gets worse as the network learns
    history = trained(
        posterior,
        cb.EMA(0.9),
        epochs=20,
        validation=(x, wrong),
        early_stopping=2,
        on_epoch=lambda p, _: seen.append(state(p)),
    )
    assert history.stopped == "early"
    assert history.best_epoch is not None
    best = seen[history.best_epoch - 1]
    assert best.keys() == posterior.state_dict().keys()
    assert all(torch.equal(value, best[name]) for name, value in posterior.state_dict().items())


def test_ctrl_c_leaves_the_average() -> None:
    def press(_: Posterior, epoch: int) -> None:
        if epoch == 2:
            signal.raise_signal(signal.SIGINT)

    stopped, shorter = cb.Point(norm_net()), cb.Point(norm_net())
    assert trained(stopped, cb.EMA(0.8), epochs=9, on_epoch=press).stopped == "interrupted"
    trained(shorter, cb.EMA(0.8), epochs=2)
    for name, value in shorter.state_dict().items():
        assert torch.equal(value, stopped.state_dict()[name]), name


# --- checkpoints ---


@pytest.mark.parametrize("averaging", [cb.EMA(0.9), cb.EqualAverage(2), cb.EqualAverage(2, every="step")])
@pytest.mark.parametrize("kind", [cb.Point, cb.MeanField])
@pytest.mark.parametrize("loader", [False, True])
def test_resumed_within_an_epoch_it_ends_with_the_same_bits(tmp_path: Path, averaging: Any, kind: Any, loader: bool) -> None:
    train: Any = DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True) if loader else (X, Y)
    stopping = 9 if loader else None  # with it the best epoch's average is restored, without it the last
    settings: dict[str, Any] = {"epochs": 4, "batch_size": 16, "validation": VALIDATION, "early_stopping": stopping}

    def run(folder: Path | None, optimizer: Any = torch.optim.Adam) -> tuple[Posterior, cb.History]:
        posterior = kind(norm_net())
        given = {"checkpoint": folder, "checkpoint_seconds": 0.0, "optimizer": optimizer, "averaging": averaging, **settings}
        return posterior, cb.fit(posterior, train, cb.Objective(), **given)

    whole, history = run(None)
    for stop in (2, 3, 5):
        with pytest.raises(ZeroDivisionError):
            run(tmp_path, type("Adam", (Killed,), {"left": stop}))
    resumed, again = run(tmp_path)
    same, third = run(tmp_path)  # finished: nothing is trained, the average and its statistics are found again
    assert history == again == third
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
        assert torch.equal(value, same.state_dict()[name]), name


class Killed(torch.optim.Adam):
    """An optimiser that ends the run after so many steps."""

    left = 0

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        if self.left == 0:
            raise ZeroDivisionError
        type(self).left -= 1
        super().step(closure)


def test_a_finished_run_can_be_prolonged(tmp_path: Path) -> None:
    first, longer, whole = (cb.Point(norm_net()) for _ in range(3))
    trained(first, cb.EMA(0.9), epochs=2, checkpoint=tmp_path)
    trained(longer, cb.EMA(0.9), epochs=5, checkpoint=tmp_path)
    trained(whole, cb.EMA(0.9), epochs=5)
    assert all(torch.equal(value, whole.state_dict()[name]) for name, value in longer.state_dict().items())


def test_another_average_is_another_run(tmp_path: Path) -> None:
    trained(cb.Point(plain_net()), checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match=r"`averaging` was None and is now 'EMA\(decay=0.9, warm_up=True\)'"):
        trained(cb.Point(plain_net()), cb.EMA(0.9), checkpoint=tmp_path)


# --- what is refused ---


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cb.EMA(1.0), "`decay` .* but got 1.0"),
        (lambda: cb.EMA(-0.1), "`decay` .* but got -0.1"),
        (lambda: cb.EMA(float("nan")), "`decay` .* but got nan"),
        (lambda: cb.EMA("0.9"), "`decay` .* but got '0.9'"),  # type: ignore[arg-type]
        (lambda: cb.EMA(0.9, warm_up=10), "`warm_up` .* but got 10"),  # type: ignore[arg-type]
        (lambda: cb.EqualAverage(0), "`start_epoch` .* but got 0"),
        (lambda: cb.EqualAverage(2, every="batch"), "`every` .* but got 'batch'"),  # type: ignore[arg-type]
        (lambda: trained(cb.Point(plain_net()), 0.9), r"`averaging` .* but got 0.9. Example: `averaging=EMA\(0.99\)`"),
        (lambda: trained(cb.Point(plain_net()), cb.EMA), "`averaging` .* but got <class"),
        (lambda: trained(cb.Point(plain_net()), cb.EqualAverage(5)), r"EqualAverage\(start_epoch=5.*`epochs=4`"),
    ],
)
def test_bad_values_are_named(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()
