"""The same sweeps on real clusters of two processes on this machine; they need the extras."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.clusters import dask_of_two, ray_of_two
from tests.sweeps import acts

import calibayes as cb
from calibayes.errors import InvalidArgumentError, MissingExtraError, SweepError
from calibayes.sweeps import Sweep
from calibayes.sweeps.runner import DIED

# What these libraries do to themselves is not ours to judge: sockets and files that they leave to the end.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """One Ray for all tests: a sweep uses what the process is connected to, and leaves it running."""
    with ray_of_two() as ray:
        yield ray


def swept(folder: Path, trial: Any, backend: str, **others: Any) -> tuple[Sweep, str]:
    err = io.StringIO()
    settings = cb.grid(n=range(1, 6), log=str(folder / "log"))
    found = cb.sweep(trial, settings, folder / "there", backend=backend, progress=Console(file=err, width=200), **others)
    return found, err.getvalue()


def check_sharing(folder: Path, backend: str, **others: Any) -> None:
    found, _ = swept(folder, acts.square, backend, **others)
    assert [(result["y"], result["threads"]) for result in found.results()] == [(n * n, 1) for n in range(1, 6)]
    assert os.getpid() not in {pid for _, pid in acts.lines(folder / "log")}
    again, err = swept(folder, acts.square, backend, **others)
    assert again.kept == 5
    assert "From before: 5 of 5 trials." in err
    assert acts.runs(folder / "log") == dict.fromkeys(range(1, 6), 1)


def check_death(folder: Path, backend: str, **others: Any) -> None:
    found, err = swept(folder, acts.kills_at_two, backend, retries=1, **others)
    assert [result["y"] for result in found.results()] == [1, 3, 4, 5]
    assert [(trial.settings["n"], trial.error.type) for trial in found.failed if trial.error] == [(2, DIED)]
    assert acts.runs(folder / "log")[2] == 2
    assert err.count("A worker process ended unexpectedly") == 2
    assert list((folder / "there").glob(".*")) == []


@pytest.mark.ray
def test_ray_runs_each_trial_once_in_processes_of_its_own(ray: Any, tmp_path: Path) -> None:
    check_sharing(tmp_path, "ray")
    assert ray.is_initialized()


@pytest.mark.ray
def test_ray_survives_a_trial_that_kills_its_worker(ray: Any, tmp_path: Path) -> None:
    check_death(tmp_path, "ray")


@pytest.mark.ray
def test_errors_of_trials_and_of_the_folder_come_back_from_ray(ray: Any, tmp_path: Path) -> None:
    found, _ = swept(tmp_path, acts.fails_at_two, "ray")
    assert [str(trial.error) for trial in found.failed] == ["ArithmeticError: two is too many"]
    # The folder is gone before a result is written, or, by another trial, just after it was.
    with pytest.raises((InvalidArgumentError, SweepError), match=r"Cannot write to|was in .* but has disappeared"):
        swept(tmp_path, acts.takes_the_folder_away, "ray")


@pytest.mark.dask
def test_dask_runs_each_trial_once_and_survives_a_trial_that_kills_its_worker(tmp_path: Path) -> None:
    with dask_of_two() as address:
        for name in ("shared", "death"):
            (tmp_path / name).mkdir()
        check_sharing(tmp_path / "shared", "dask", address=address)
        check_death(tmp_path / "death", "dask", address=address)


@pytest.mark.ray
def test_the_address_of_another_cluster_than_the_connected_one_is_refused(ray: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"connected to, but got '127.0.0.1:1'"):
        swept(tmp_path, acts.square, "ray", address="127.0.0.1:1")


@pytest.mark.dask
def test_a_cluster_that_is_not_there_is_named(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(InvalidArgumentError, match=r"Cannot reach a Dask cluster at 'tcp://127.0.0.1:1': .*refused"):
        swept(tmp_path, acts.square, "dask", address="tcp://127.0.0.1:1")


@pytest.mark.parametrize("backend", ["ray", "dask"])
def test_a_missing_package_is_named(tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, backend, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'calibayes\[{backend}\]'"):
        swept(tmp_path, acts.square, backend)
