"""Claims: one holder at a time, and none after its process has ended, however it ended."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import filelock
import pytest
from tests.sweeps.acts import wait_for

from calibayes.sweeps.trial_locks import lock_owner, lock_path, release_abandoned, trial_lock

FORK = multiprocessing.get_context("fork")  # spawned processes would import torch first


def count_up(path: Path, counter: Path, times: int) -> None:
    """What goes wrong as soon as two do it at once."""
    for _ in range(times):
        with trial_lock(path, "me", wait=True) as ours:
            assert ours
            counter.write_text(str(int(counter.read_text()) + 1))


def hold(path: Path, owner: str) -> None:
    with trial_lock(path, owner, wait=False) as ours:
        assert ours
        signal.pause()


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    path, counter = lock_path(tmp_path, "key"), tmp_path / "counter"
    counter.write_text("0")
    processes = [FORK.Process(target=count_up, args=(path, counter, 200)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert counter.read_text() == "800"
    assert not path.exists()


def test_a_claim_ends_with_its_process_and_tells_what_was_under_way(tmp_path: Path) -> None:
    path = lock_path(tmp_path, "key")
    process = FORK.Process(target=hold, args=(path, "a sweep"))
    process.start()
    wait_for(lambda: lock_owner(path) == "a sweep")
    with trial_lock(path, "another", wait=False) as ours:
        assert not ours
    assert release_abandoned(tmp_path) == set()
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert lock_owner(path) == "a sweep"
    assert release_abandoned(tmp_path) == {"key"}
    assert list(tmp_path.iterdir()) == []
    with trial_lock(path, "another", wait=False) as ours:
        assert ours
        assert lock_owner(path) == "another"
    assert lock_owner(path) is None


def test_the_claims_of_a_sweep_that_is_there_are_not_taken_away(tmp_path: Path) -> None:
    left = lock_path(tmp_path, "key")
    left.write_text("sweep-1")  # by a worker that was killed; its sweep will look for it
    with trial_lock(lock_path(tmp_path, "sweep-1"), "sweep-1", wait=False):
        assert release_abandoned(tmp_path) == set()
        assert left.exists()
    assert release_abandoned(tmp_path) == {"key"}


def test_a_file_system_without_locks_does_not_stop_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(code: int) -> Any:
        def lock_descriptor(*_: Any, **__: Any) -> bool:
            raise OSError(code, "no lock")

        return lock_descriptor

    path = lock_path(tmp_path, "key")
    monkeypatch.setattr(filelock, "lock_descriptor", failing(errno.ENOLCK))
    with trial_lock(path, "a sweep", wait=False) as locked:
        assert locked
        assert lock_owner(path) == "a sweep"
    monkeypatch.setattr(filelock, "lock_descriptor", failing(errno.EIO))
    with pytest.raises(OSError, match="no lock"), trial_lock(path, "a sweep", wait=False):
        pass
