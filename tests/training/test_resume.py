"""Killed at any moment and started again, training ends with the same bits."""

from __future__ import annotations

import multiprocessing
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import calibayes as cb
from calibayes.errors import CheckpointError
from calibayes.posterior import Posterior

# One process imports torch, and all others are forks of it.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["calibayes"])
X, Y = torch.randn(120, 6, generator=torch.Generator().manual_seed(0)), torch.arange(120) % 3


class Augmented(Dataset[tuple[Tensor, Tensor]]):
    def __len__(self) -> int:
        return 96

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return X[index] + 0.1 * torch.randn(6), Y[index]


def train_and_save(folder: Path | None, out: Path, kind: str, data: str) -> None:
    """Train everything that has a state: batch norm, dropout, momentum, schedules, early stopping, a loader that augments."""
    torch.set_num_threads(1)
    torch.manual_seed(4)
    net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
    posterior = cb.MeanField(net) if kind == "mean-field" else cb.Point(net)
    train: Any = DataLoader(Augmented(), batch_size=16, shuffle=True) if data == "loader" else (X[:96], Y[:96])
    history = cb.fit(
        posterior,
        train,
        cb.Objective(lam=cb.schedules.Linear(end=10.0, steps=20)),
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=0.01),
        epochs=12,
        batch_size=16,
        samples=2,
        scheduler=lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 6]),
        validation=(X[108:], Y[108:]),
        calibration_data=(X[96:108], Y[96:108]),
        early_stopping=50,
        checkpoint=folder,
        checkpoint_seconds=0.0,
        seed=3,
    )
    cb.save(posterior, out)
    out.with_suffix(".txt").write_text(repr((history.epochs, history.steps, history.stopped, history.best_epoch)))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "data"), [("mean-field", "tensors"), pytest.param("point", "loader", marks=pytest.mark.slow)])
def test_killed_and_started_again_it_ends_with_the_same_bits(tmp_path: Path, kind: str, data: str) -> None:
    whole, interrupted, folder = tmp_path / "whole.safetensors", tmp_path / "interrupted.safetensors", tmp_path / "checkpoints"
    for reached in (5, 23, 41):  # steps: within the first epoch, at about the end of one, and later
        process = PROCESSES.Process(target=train_and_save, args=(folder, interrupted, kind, data))
        process.start()
        while process.is_alive():
            newest = max((int(p.stem.split("-")[1]) for p in folder.glob("step-*")), default=0)
            if newest >= reached:
                process.kill()
                break
            time.sleep(0.002)
        process.join()
        assert process.exitcode == -signal.SIGKILL
    for checkpoints, out in ((None, whole), (folder, interrupted)):
        process = PROCESSES.Process(target=train_and_save, args=(checkpoints, out, kind, data))
        process.start()
        process.join(timeout=120)
        assert process.exitcode == 0
    assert interrupted.with_suffix(".txt").read_text() == whole.with_suffix(".txt").read_text()
    assert interrupted.read_bytes() == whole.read_bytes()
    assert len(list(folder.iterdir())) <= 3  # two checkpoints, and at most one file torn by the kill


def train(folder: Path | None, **settings: Any) -> tuple[Posterior, cb.History]:
    torch.manual_seed(0)
    x = torch.randn(64, 4) + settings.pop("shift", 0.0)
    posterior = cb.MeanField(nn.Linear(4, 3), prior_std=settings.pop("prior_std", 0.05))
    arguments: dict[str, Any] = {"epochs": 3, "batch_size": 16, "checkpoint": folder, **settings}
    objective = arguments.pop("objective", cb.Objective())
    return posterior, cb.fit(posterior, (x, torch.arange(64) % 3), objective, **arguments)


def flat(posterior: Posterior) -> Tensor:
    return torch.cat([p.detach() for p in posterior.parameters()])


def test_a_finished_run_is_not_trained_again_and_can_be_prolonged(tmp_path: Path) -> None:
    posterior, history = train(tmp_path)
    again, same = train(tmp_path)
    assert torch.equal(flat(posterior), flat(again))
    assert history == same
    longer, _ = train(tmp_path, epochs=5)
    assert torch.equal(flat(longer), flat(train(None, epochs=5)[0]))


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied", "header"])
def test_a_torn_file_is_passed_over_for_the_previous_one(tmp_path: Path, damage: str) -> None:
    expected = flat(train(None)[0])
    train(tmp_path, epochs=2)
    newest = max(tmp_path.glob("step-*"))
    content = bytearray(newest.read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "emptied":
        content = bytearray()
    elif damage == "header":
        content[content.index(b"fingerprint")] ^= 0x01
    else:
        content[-5] ^= 0xFF
    newest.write_bytes(content)
    assert torch.equal(flat(train(tmp_path)[0]), expected)


def test_fewer_epochs_than_were_trained_are_refused(tmp_path: Path) -> None:
    train(tmp_path, epochs=3)
    with pytest.raises(CheckpointError, match="3 epochs behind it, more than `epochs=2`"):
        train(tmp_path, epochs=2)


def test_a_folder_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="`checkpoint` must be a folder"):
        train(tmp_path / "file")


def test_a_failed_write_keeps_the_checkpoint_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tmp_path, epochs=1)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("calibayes.tensor_tree_file.save_file", full)
        with pytest.raises(CheckpointError, match=r"No space left on device.*The one before is kept"):
            train(tmp_path, epochs=2)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000004.safetensors"]
    assert torch.equal(flat(train(tmp_path, epochs=3)[0]), flat(train(None, epochs=3)[0]))


def test_nothing_whole_left_is_a_named_error(tmp_path: Path) -> None:
    train(tmp_path, epochs=2)
    for path in tmp_path.glob("step-*"):
        path.write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match=r"No whole checkpoint is left.*step-000000008.*Delete the folder"):
        train(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": 1}, "`settings.seed` was 0 and is now 1"),
        ({"batch_size": 32}, "`batches` was 4 and is now 2"),
        ({"batch_size": 17}, "`batch_size` was 16 and is now 17"),
        ({"objective": cb.Objective(lam=1.0)}, "`lam.0` was 10.0 and is now 1.0"),
        ({"objective": cb.Objective(lam=lambda step: 2.0 * step)}, "`lam.0` was 10.0 and is now 0.0"),
        ({"objective": cb.Objective(calibration=cb.MMCE())}, "`calibration` was .WMMCE.* and is now .MMCE"),
        ({"optimizer": torch.optim.SGD}, "`optimizer.0` was 'Adam' and is now 'SGD'"),
        ({"optimizer": lambda p: torch.optim.Adam(p, lr=0.1)}, "`optimizer.1.0.lr` was 0.001 and is now 0.1"),
        ({"early_stopping": 2, "validation": (torch.randn(8, 4), torch.arange(8) % 3)}, "`early_stopping` was None"),
        ({"scheduler": lambda o: torch.optim.lr_scheduler.StepLR(o, 1)}, "`scheduler` was None and is now 'StepLR'"),
        ({"prior_std": 0.1}, "`prior_std` was 0.05 and is now 0.1"),
        ({"shift": 1.0}, "`data` was"),
        ({"validation_samples": 3}, "`validation_samples` was 10 and is now 3"),
        ({"calibration_data": (torch.randn(8, 4), torch.arange(8) % 3)}, "`calibration_data` was None"),
        ({"scheduler_interval": "step"}, "`scheduler_interval` was 'epoch' and is now 'step'"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    train(tmp_path, epochs=1)
    with pytest.raises(CheckpointError, match=message):
        train(tmp_path, **settings)


def test_a_state_that_needs_pickle_is_a_named_error(tmp_path: Path) -> None:
    class Odd(torch.optim.SGD):
        def state_dict(self) -> dict[str, Any]:
            return {**super().state_dict(), "odd": object()}

    with pytest.raises(CheckpointError, match=r"state\.optimizer\.odd is a object"):
        train(tmp_path, optimizer=Odd)
