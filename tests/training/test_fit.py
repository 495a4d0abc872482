"""Promises of `fit` around the steps: data of every kind, seeds, early stopping, records."""

from __future__ import annotations

import os
import pty
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.training.toy import Rows, data, net, trained
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import calibayes as cb


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    first, again, other = (trained(data(), seed=seed) for seed in (5, 5, 6))
    assert torch.equal(first[0], again[0])
    assert first[1] == again[1]
    assert not torch.equal(first[0], other[0])


def test_tensors_arrays_and_datasets_of_the_same_examples_train_alike() -> None:
    x, y = data()
    expected = trained((x, y))[0]
    for same in ((x.numpy(), y.numpy()), [x, y], TensorDataset(x, y), Rows(x, y)):
        assert torch.equal(trained(same)[0], expected)


def test_a_loader_is_shuffled_by_the_seed() -> None:
    x, y = data()

    def run(**settings: Any) -> Tensor:
        return trained(DataLoader(Rows(x, y), batch_size=32, shuffle=True, **settings))[0]

    first = run()
    torch.rand(7)
    assert torch.equal(run(), first)
    assert torch.equal(run(generator=torch.Generator().manual_seed(1)), run(generator=torch.Generator().manual_seed(2)))


def test_the_callers_generators_are_left_alone() -> None:
    posterior = cb.MeanField(net())
    torch.manual_seed(11)
    np.random.seed(11)
    random.seed(11)
    expected = torch.rand(3), np.random.rand(), random.random()
    torch.manual_seed(11)
    np.random.seed(11)
    random.seed(11)
    cb.fit(posterior, Rows(*data()), cb.Objective(), epochs=1)
    assert torch.equal(torch.rand(3), expected[0])
    assert (np.random.rand(), random.random()) == expected[1:]


def test_held_out_examples_that_are_augmented_depend_on_the_seed_alone() -> None:
    class Augmented(Rows):
        def __getitem__(self, index: int) -> tuple[Tensor, int]:
            x, y = super().__getitem__(index)
            return x + torch.randn(5) + float(np.random.rand()) + random.random(), y

    runs = []
    for _ in range(2):
        torch.rand(3)
        np.random.rand()
        random.random()
        runs.append(trained(data(), calibration_data=Augmented(*data(40, seed=8)))[0])
    assert torch.equal(*runs)


def test_early_stopping_gives_the_best_weights_back() -> None:
    posterior = cb.Point(net())
    x, y = data(40)
    history = cb.fit(
        posterior,
        (x, y),
        cb.Objective(lam=0.0),
        optimizer=lambda p: torch.optim.Adam(p, lr=0.05),
        epochs=200,
        validation=data(200, seed=9),
        early_stopping=3,
    )
    frame = history.to_frame()
    assert history.stopped == "early"
    assert history.best_epoch == int(frame["val_nll"].argmin()) + 1
    assert len(frame) == int(frame["val_nll"].argmin()) + 4
    restored = cb.evaluate(cb.predict(posterior, data(200, seed=9)[0]).probs, data(200, seed=9)[1])
    assert restored.nll == pytest.approx(frame["val_nll"].min(), rel=1e-5)


def test_schedulers_step_once_an_epoch_or_once_a_step() -> None:
    def halve(optimizer: Any) -> torch.optim.lr_scheduler.LRScheduler:
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    by_epoch = trained(data(), scheduler=halve)[1].to_frame()["lr"].tolist()
    by_step = trained(data(), scheduler=halve, scheduler_interval="step")[1].to_frame()["lr"].tolist()
    assert by_epoch == pytest.approx([1e-3, 5e-4, 2.5e-4])
    assert by_step == pytest.approx([1e-3 / 8, 1e-3 / 64, 1e-3 / 512])


def test_schedules_of_lambda_and_beta_are_followed() -> None:
    posterior = cb.MeanField(net())
    objective = cb.Objective(lam=cb.schedules.Linear(end=30.0, steps=3), beta=lambda step: 0.1 * step)
    history = cb.fit(posterior, data(96), objective, epochs=2, batch_size=32)
    for k, step in enumerate(history.steps):
        weighted = 10.0 * min(k, 3) / 32 * step.calibration + 0.1 * k / 96 * step.kl
        assert step.total == pytest.approx(step.cross_entropy + weighted, rel=1e-6)
    assert history.steps[0].calibration == 0.0


def test_the_epochs_record_the_means_over_examples() -> None:
    history = trained(data(91))[1]
    steps = history.steps[3:6]
    assert [step.examples for step in steps] == [31, 30, 30]
    mean = sum(step.cross_entropy * step.examples for step in steps) / 91
    assert history.epochs[1]["cross_entropy"] == pytest.approx(mean)
    assert list(history.to_frame().index) == [1, 2, 3]


def test_whoever_asks_is_called_after_every_epoch_and_what_they_find_is_kept() -> None:
    seen = []

    def look(posterior: Any, epoch: int) -> dict[str, float] | None:
        seen.append((epoch, posterior.mu.detach().clone()))
        return {"width": float(posterior.rho.detach().exp().mean())} if epoch == 2 else None

    plain, history = trained(data(), on_epoch=look)
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    assert not torch.equal(seen[0][1], seen[1][1])
    assert ["width" in row for row in history.epochs] == [False, True, False]
    assert torch.equal(plain, trained(data())[0])  # looking changes nothing


def test_the_history_is_drawn() -> None:
    from matplotlib.figure import Figure

    history = trained(data(), validation=data(50, seed=3))[1]
    ax = history.plot(Figure().add_subplot())
    drawn = {line.get_label(): list(line.get_ydata()) for line in ax.lines}  # type: ignore[arg-type]
    assert drawn["validation NLL"] == [row["val_nll"] for row in history.epochs]
    assert drawn["total"] == [row["total"] for row in history.epochs]


SCRIPT = """
    import signal, torch, calibayes as cb
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with it ignored
    torch.set_num_threads(1)
    x = torch.randn(256, 5)
    posterior = cb.MeanField(torch.nn.Linear(5, 3))
    before = posterior.mu.detach().clone()

    def lam(step):
        if step == 5:
            print("training", flush=True)
        return 10.0

    history = cb.fit(posterior, (x, torch.arange(256) % 3), cb.Objective(lam), epochs={epochs}, batch_size=8)
    print(history.stopped, len(history.steps), not torch.equal(posterior.mu, before))
"""


def test_ctrl_c_keeps_what_was_learned() -> None:
    script = textwrap.dedent(SCRIPT).format(epochs=10**6)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "training\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    stopped, steps, moved = out.split()
    assert (stopped, moved, process.returncode) == ("interrupted", "True", 0)
    assert int(steps) > 5
    assert err == ""  # no terminal, no progress line


@pytest.mark.slow
def test_a_terminal_is_shown_the_terms_and_the_time_left(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT).format(epochs=40))
    master, slave = pty.openpty()
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            chunk = os.read(master, 4096)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    os.close(master)
    process.communicate(timeout=60)
    assert process.returncode == 0
    text = shown.decode()
    assert "epoch 40/40" in text
    for word in ("loss", "ce ", "aece", "kl", "left 0:"):
        assert word in text


def test_a_part_given_in_evaluation_mode_stays_in_it() -> None:
    network = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    network[0].eval()
    posterior = cb.MeanField(network)
    cb.fit(posterior, data(), cb.Objective(), epochs=1)
    buffers = posterior.buffer_values()
    assert int(buffers["0.num_batches_tracked"]) == 0
    assert int(buffers["2.num_batches_tracked"]) == 1


def test_micro_batches_count_by_their_size_in_the_statistics() -> None:
    x, y = data(32)
    network = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3))
    posterior = cb.Point(network)
    cb.fit(posterior, (x, y), cb.Objective(lam=0.0), epochs=1, batch_size=32, micro_batch_size=20)
    torch.testing.assert_close(posterior.buffer_values()["0.running_mean"], 0.1 * x.mean(0))


@pytest.mark.parametrize("kind", ["reversed", "read-only", "big-endian"])
def test_awkward_arrays_train_like_plain_ones(kind: str) -> None:
    x, y = (part.numpy().copy() for part in data())
    expected = trained((x, y))[0]
    if kind == "reversed":
        x, y = x[::-1].copy()[::-1], y[::-1].copy()[::-1]
    elif kind == "read-only":
        x.flags.writeable = y.flags.writeable = False
    else:
        x, y = x.astype(">f4"), y.astype(">i8")
    assert torch.equal(trained((x, y))[0], expected)


def test_a_schedule_may_end_before_the_fingerprint_does(tmp_path: Path) -> None:
    posterior = cb.MeanField(net())
    table = [0.5] * 9
    history = cb.fit(
        posterior, data(), cb.Objective(lam=lambda step: table[step]), epochs=3, batch_size=32, checkpoint=tmp_path
    )
    assert len(history.steps) == 9


def test_the_validation_nll_of_a_network_that_is_too_sure_is_finite() -> None:
    x, y = data()
    sure = nn.Linear(5, 3)
    with torch.no_grad():
        sure.weight.zero_()
        sure.bias.copy_(torch.tensor([300.0, 0.0, 0.0]))
    history = cb.fit(cb.Point(sure), (x, y), cb.Objective(lam=0.0), epochs=1, validation=(x, y))
    assert history.epochs[-1]["val_nll"] == pytest.approx(300.0 * float((y > 0).float().mean()), rel=0.01)
