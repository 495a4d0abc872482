"""What `fit` promises around the steps: data of every kind, seeds, early stopping, errors, records."""

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
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

import calibayes as cb
from calibayes.errors import (
    DataError,
    DataOverlapError,
    InvalidArgumentError,
    InvalidTargetsError,
    NonFiniteLossError,
    OptimizerError,
    UnsupportedNetworkError,
)


def net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))


def data(n: int = 90, seed: int = 2) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 5, generator=generator)
    return x, (x[:, :3] + 0.5 * torch.randn(n, 3, generator=generator)).argmax(-1)


def trained(train: Any, **settings: Any) -> tuple[Tensor, cb.History]:
    posterior = cb.MeanField(net())
    history = cb.fit(posterior, train, cb.Objective(), **{"epochs": 3, "batch_size": 32, **settings})
    return torch.cat([p.detach().reshape(-1) for p in posterior.parameters()]), history


class Rows(Dataset[tuple[Tensor, int]]):
    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.x[index], int(self.y[index])


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
    history = trained(data(90))[1]
    steps = history.steps[3:6]
    assert [step.examples for step in steps] == [32, 32, 26]
    mean = sum(step.cross_entropy * step.examples for step in steps) / 90
    assert history.epochs[1]["cross_entropy"] == pytest.approx(mean)
    assert list(history.to_frame().index) == [1, 2, 3]


def test_the_history_is_drawn() -> None:
    from matplotlib.figure import Figure

    history = trained(data(), validation=data(50, seed=3))[1]
    ax = history.plot(Figure().add_subplot())
    drawn = {line.get_label(): list(line.get_ydata()) for line in ax.lines}  # type: ignore[arg-type]
    assert drawn["validation NLL"] == [row["val_nll"] for row in history.epochs]
    assert drawn["total"] == [row["total"] for row in history.epochs]


def test_a_loss_that_is_not_finite_stops_with_step_and_term_and_keeps_the_weights() -> None:
    x, y = data(64)
    x[40, 2] = torch.nan
    posterior = cb.Point(net())
    with pytest.raises(NonFiniteLossError, match=r"cross_entropy term became nan in epoch 1, step \d") as caught:
        cb.fit(posterior, (x, y), cb.Objective(lam=0.0), batch_size=16)
    assert caught.value.term == "cross_entropy"
    assert caught.value.epoch == 1
    assert 1 <= caught.value.step <= 4
    assert all(bool(p.isfinite().all()) for p in posterior.parameters())


def test_the_calibration_data_must_be_apart_from_the_validation_data() -> None:
    x, y = data()
    whole = TensorDataset(x, y)
    for calibration, validation in [
        ((x, y), (x, y)),
        ((x[:50], y[:50]), (x[40:], y[40:])),
        ((x[:50].numpy(), y[:50].numpy()), (x[40:], y[40:])),
        (whole, DataLoader(whole)),
        (Subset(whole, [0, 1, 2]), Subset(whole, [2, 3])),
        (Subset(whole, [0, 1]), (whole)),
    ]:
        with pytest.raises(DataOverlapError, match="`calibration_data` and `validation` share examples"):
            trained((x, y), calibration_data=calibration, validation=validation)
    trained((x, y), calibration_data=(x[::2], y[::2]), validation=(x[1::2], y[1::2]), epochs=1)
    trained((x, y), calibration_data=(x[:50], y[:50]), validation=(x[50:], y[50:]), epochs=1)
    trained((x, y), calibration_data=Subset(whole, [0, 1, 2]), validation=Subset(whole, [3, 4]), epochs=1)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"epochs": 0}, InvalidArgumentError, "`epochs` to be a positive integer, but got 0"),
        ({"batch_size": 2.5}, InvalidArgumentError, "`batch_size` to be a positive integer, but got 2.5"),
        ({"samples": True}, InvalidArgumentError, "`samples`"),
        ({"sample_chunk": "all"}, InvalidArgumentError, "`sample_chunk`.*'all'"),
        ({"clip_norm": -1.0}, InvalidArgumentError, "`clip_norm` to be a positive finite number, but got -1.0"),
        ({"seed": 0.5}, InvalidArgumentError, "`seed` to be an integer, but got 0.5"),
        ({"device": "gpu"}, InvalidArgumentError, "`device` .* 'gpu'"),
        ({"early_stopping": 2.5, "validation": data(9)}, InvalidArgumentError, "`patience` .* 2.5"),
        ({"precision": "fp8"}, InvalidArgumentError, "'fp8'"),
        ({"scheduler_interval": "day"}, InvalidArgumentError, "'day'"),
        (
            {"scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau, "scheduler_interval": "step"},
            InvalidArgumentError,
            "ReduceLROnPlateau",
        ),
        ({"early_stopping": 3}, InvalidArgumentError, "needs `validation`"),
        ({"optimizer": lambda p: "adam"}, OptimizerError, "returned str"),
        ({"optimizer": lambda p: torch.optim.Adam(p[:1])}, OptimizerError, "leaves out 'groups.0.rho'"),
        ({"optimizer": lambda p: torch.optim.SGD(nn.Linear(2, 2).parameters())}, OptimizerError, "not the posterior's"),
        (
            {"optimizer": lambda p: torch.optim.AdamW([{**g, "weight_decay": 0.1} for g in p])},
            OptimizerError,
            "Weight decay 0.1 on rho",
        ),
        ({"optimizer": lambda p: torch.optim.LBFGS([q for g in p for q in g["params"]])}, OptimizerError, "LBFGS|flat vectors"),
        ({"optimizer": torch.optim.Muon}, OptimizerError, "cannot be made for flat vectors"),
        ({"train": (data()[0].double(), data()[1])}, DataError, "inputs are torch.float64 but the weights are torch.float32"),
        ({"train": "data.csv"}, DataError, "but got a str"),
        ({"train": (torch.zeros(4, 5), torch.zeros(4))}, DataError, "integer type, but are torch.float32"),
        ({"train": (torch.zeros(4, 5), torch.zeros(3, dtype=torch.long))}, DataError, r"shape \[3\]"),
        ({"train": (np.zeros((4, 5), dtype=object), np.zeros(4, dtype=int))}, DataError, "dtype object"),
        ({"train": (np.zeros((4, 5)), np.array(list("abca")))}, DataError, "dtype <U1.*numpy.unique"),
        ({"train": DataLoader(TensorDataset(*data(9)), batch_size=10, drop_last=True)}, DataError, "no batch"),
        ({"train": (torch.zeros(0, 5), torch.zeros(0, dtype=torch.long))}, DataError, "no examples"),
        ({"train": (torch.zeros(4, 5), torch.tensor([0, 1, 2, 3]))}, InvalidTargetsError, "0 … 2 .* but one is 3"),
        ({"train": (torch.zeros(4, 5), torch.tensor([0, 1, 2, -100]))}, InvalidTargetsError, "but one is -100"),
    ],
)
def test_bad_input_gets_a_named_error(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    train = settings.pop("train", data())
    with pytest.raises(error, match=message):
        trained(train, **settings)


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


def test_batch_norm_on_a_single_example_says_what_to_do() -> None:
    network = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    with pytest.raises(DataError, match="Batch norm met a batch of one example"):
        cb.fit(cb.Point(network), data(9), cb.Objective(), batch_size=8)


def test_micro_batches_count_by_their_size_in_the_statistics() -> None:
    x, y = data(32)
    network = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3))
    posterior = cb.Point(network)
    cb.fit(posterior, (x, y), cb.Objective(lam=0.0), epochs=1, batch_size=32, micro_batch_size=20)
    torch.testing.assert_close(posterior.buffer_values()["0.running_mean"], 0.1 * x.mean(0))


class InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layer(x.sub_(1.0))
        return logits


def test_a_network_that_changes_its_input_is_refused() -> None:
    x, y = data()
    with pytest.raises(UnsupportedNetworkError, match="changes its input in place"):
        cb.fit(cb.Point(InPlace()), (x, y), cb.Objective())
    with pytest.raises(UnsupportedNetworkError, match="changes its input in place"):
        cb.predict(cb.MeanField(InPlace()), x)


class NaNGradient(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layer(x) + (self.layer.weight.sum() * 0).abs().sqrt()
        return logits


def test_weights_that_are_not_finite_are_neither_returned_nor_checkpointed(tmp_path: Path) -> None:
    posterior = cb.Point(NaNGradient())
    with pytest.raises(NonFiniteLossError, match=r"'groups.0.theta' is not finite after step 1") as caught:
        cb.fit(posterior, data(), cb.Objective(lam=0.0), epochs=1, batch_size=90, checkpoint=tmp_path)
    assert caught.value.term == "gradient"
    assert list(tmp_path.iterdir()) == []
    assert not posterior.training


@pytest.mark.parametrize("mode", ["soft", "hard"])
@pytest.mark.parametrize("micro", [None, 16])
def test_a_wrong_label_is_named_wherever_it_is(mode: Any, micro: int | None) -> None:
    x, y = data()
    wrong = y.clone()
    wrong[:] = 7
    objective = cb.Objective(calibration=cb.WMMCE(mode=mode))
    for train, held_out in (((x, y), (x.clone(), wrong)), ((x, wrong), None)):
        with pytest.raises(InvalidTargetsError, match="but one is 7"):
            cb.fit(cb.Point(net()), train, objective, calibration_data=held_out, micro_batch_size=micro)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.full((90,), 0.7), "integer type, but are torch.float32"),
        (torch.zeros(90, 3, dtype=torch.long), r"targets have shape \[32, 3\]. One-hot"),
    ],
)
def test_labels_of_a_dataset_are_refused_rather_than_truncated(labels: Tensor, message: str) -> None:
    with pytest.raises(DataError, match=message):
        trained(TensorDataset(data()[0], labels))


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


def test_a_plain_network_is_told_how_to_become_a_posterior() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got Sequential\. Wrap it"):
        cb.fit(net(), data(), cb.Objective())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"got Sequential\. Wrap it"):
        cb.predict(net(), data()[0])  # type: ignore[arg-type]
