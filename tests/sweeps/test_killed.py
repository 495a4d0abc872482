"""Sweeps whose processes are killed, stopped, or not alone in their folder: real processes and real signals."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from rich.console import Console
from tests.sweeps import acts

import calibayes as cb
from calibayes.sweeps import read
from calibayes.sweeps.runner import DIED

ROOT = Path(__file__).parents[2]
CODE = """
import json, sys
import calibayes
from tests.sweeps import acts
trial, settings, folder, workers = sys.argv[1:]
calibayes.sweep(getattr(acts, trial), json.loads(settings), folder, workers=int(workers))
"""


def start(trial: Callable[..., object], settings: str, folder: Path, workers: int) -> subprocess.Popen[str]:
    """A sweep as a process of its own, in a group of its own as if it had a terminal for itself."""
    command = [sys.executable, "-W", "error", "-c", CODE, trial.__name__, settings, str(folder), str(workers)]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def meanwhile(action: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def hidden(folder: Path) -> list[Path]:
    return list(folder.glob(".*"))


def test_a_worker_that_is_killed_costs_what_was_under_way_and_nothing_else(tmp_path: Path) -> None:
    log, go, folder = tmp_path / "log", tmp_path / "go", tmp_path / "results"

    def kill_one() -> None:
        acts.wait_for(lambda: len(acts.lines(log)) == 2)  # both workers are at it
        victim, other = (pid for _, pid in acts.lines(log))
        os.kill(victim, signal.SIGKILL)
        # joblib ends the other one too; until then it must not get hold of further trials.
        acts.wait_for(lambda: not psutil.pid_exists(other))
        go.touch()

    err = io.StringIO()
    killer = meanwhile(kill_one)
    settings = cb.grid(n=range(5), log=str(log), go=str(go))
    found = cb.sweep(acts.held, settings, folder, workers=2, progress=Console(file=err))
    killer.join()
    assert [result["y"] for result in found.results()] == list(range(5))
    killed = {n for n, _ in acts.lines(log)[:2]}
    assert acts.runs(log) == {n: 1 + (n in killed) for n in range(5)}
    assert err.getvalue().count("A worker process ended unexpectedly") == 1
    assert hidden(folder) == []


@pytest.mark.slow
def test_what_a_killed_worker_was_writing_is_cleared_away(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", tmp_path / "results"
    settings = cb.grid(n=range(1, 4), log=str(log))
    found = cb.sweep(acts.killed_while_writing, settings, folder, workers=2, progress=False)
    assert [result["y"] for result in found.results()] == [1, 2, 3]
    assert acts.runs(log)[2] == 2
    assert hidden(folder) == []


def test_a_trial_that_kills_its_worker_each_time_is_given_up_alone(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", tmp_path / "results"
    settings = cb.grid(n=range(1, 6), log=str(log))
    found = cb.sweep(acts.kills_at_two, settings, folder, workers=2, retries=1, progress=False)
    assert [result["y"] for result in found.results()] == [1, 3, 4, 5]
    (failed,) = found.failed
    assert failed.settings["n"] == 2
    assert failed.error is not None
    assert failed.error.type == DIED
    times = acts.runs(log)
    assert times[2] == 2 == int(failed.error.message.split(", ")[1].split()[0])
    assert all(times[n] <= 2 for n in (1, 3, 4, 5))
    assert hidden(folder) == []
    assert len(cb.sweep(acts.kills_at_two, settings, folder, workers=2, keep_failures=True, progress=False).failed) == 1


def test_two_sweeps_in_one_folder_run_each_trial_once(tmp_path: Path) -> None:
    log, folder, err = tmp_path / "log", tmp_path / "results", io.StringIO()
    settings = cb.grid(n=range(6), log=str(log), all=6)
    other = start(acts.first_ends_last, json.dumps(settings), folder, 1)
    acts.wait_for(lambda: bool(acts.lines(log)))  # the other one has begun trial 0, and stays in it
    found = cb.sweep(acts.first_ends_last, settings, folder, workers=1, progress=Console(file=err))
    _, said = other.communicate(timeout=120)
    assert other.returncode == 0, said
    assert acts.runs(log) == dict.fromkeys(range(6), 1)
    assert [result["y"] for result in found.results()] == list(range(6))
    assert "Another sweep is running 1 of the trials; waiting for it." in err.getvalue()
    assert said.splitlines()[-1].startswith("[6/6] ")
    assert hidden(folder) == []


def test_what_another_sweep_was_running_when_it_was_killed_is_taken_over(tmp_path: Path) -> None:
    log, go, folder, err = tmp_path / "log", tmp_path / "go", tmp_path / "results", io.StringIO()
    settings = cb.grid(n=range(2), log=str(log), go=str(go))
    other = start(acts.held, json.dumps(settings), folder, 1)
    acts.wait_for(lambda: len(acts.lines(log)) == 1)

    def kill_it() -> None:
        acts.wait_for(lambda: len(acts.lines(log)) == 2)  # we have begun the second
        other.kill()
        other.communicate()
        go.touch()

    killer = meanwhile(kill_it)
    found = cb.sweep(acts.held, settings, folder, workers=1, progress=Console(file=err))
    killer.join()
    assert len(found.results()) == 2
    assert acts.runs(log) == {0: 2, 1: 1}
    assert hidden(folder) == []


@pytest.mark.slow
def test_workers_end_with_a_sweep_that_is_killed_and_what_is_finished_stays(tmp_path: Path) -> None:
    log, go, folder = tmp_path / "log", tmp_path / "go", tmp_path / "results"
    quick = [{"n": 0, "log": str(log), "go": str(ROOT)}]  # whose sign to go is there
    settings = quick + cb.grid(n=range(1, 4), log=str(log), go=str(go))
    process = start(acts.held, json.dumps(settings), folder, 2)
    acts.wait_for(lambda: len(acts.lines(log)) == 3 and len(read(folder)) == 1)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate(timeout=60)
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []
    go.touch()
    found = cb.sweep(acts.held, settings, folder, workers=1, progress=False)
    assert (found.kept, found.failed, len(found)) == (1, [], 4)
    under_way = {n for n, _ in acts.lines(log)[:3]} - {0}
    assert acts.runs(log) == {n: 1 + (n in under_way) for n in range(4)}
    assert {n for n, _ in acts.lines(log)[-2:]} == under_way  # it comes last: it may have been the cause
    assert hidden(folder) == []
