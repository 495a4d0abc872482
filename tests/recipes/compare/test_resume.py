"""A comparison that is stopped, disturbed or extended goes on from what is there, and ends with the same numbers."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console
from tests.recipes.compare.blobs import BLOBS, ROOT, TINY, TRAININGS, Shown, computed, lasting, shown
from torch import nn

from calibayes.errors import SweepError
from calibayes.networks import MLP
from calibayes.recipes.compare import MethodRun, Settings, Task, jobs, result_files
from calibayes.recipes.compare.jobs import TrainingRecords
from calibayes.recipes.compare.run_and_print import run_and_print

# The page takes longest of all that a comparison writes, and stopping has no bearing on it.
CODE = """
import sys
from pathlib import Path
from rich.console import Console
from calibayes.recipes.compare import result_files
from calibayes.recipes.compare.run_and_print import run_and_print
from tests.recipes.compare.blobs import BLOBS, TINY
result_files._study = result_files.write_page = lambda *_: {}
aside = Console(stderr=True, highlight=False)
words = {"command": "calibayes compare", "task": BLOBS, "workers": int(sys.argv[2])}
run_and_print(TINY, Path(sys.argv[1]), console=Console(), aside=aside, **words)
"""


def start(folder: Path, workers: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", CODE, str(folder), str(workers)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def trainings(folder: Path) -> list[Path]:
    return sorted((folder / "runs").glob("*-training-*.safetensors"))


def wait(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.005)


@pytest.fixture(scope="module", autouse=True)
def _no_page() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_files, "_study", lambda *_: {})
        patch.setattr(result_files, "write_page", lambda *_: {})
        yield


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, _no_page: None) -> Shown:
    return shown(tmp_path_factory.mktemp("undisturbed"))


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[MethodRun]:
    """The runs that are trained during a test."""
    seen: list[MethodRun] = []
    train = jobs.train

    def watched(task: Task, settings: Settings, run: MethodRun) -> dict[str, Any]:
        seen.append(run)
        return train(task, settings, run)

    monkeypatch.setattr(jobs, "train", watched)
    return seen


@pytest.mark.slow
def test_killed_in_the_middle_and_started_again(undisturbed: Shown, trained: list[MethodRun], tmp_path: Path) -> None:
    process = start(tmp_path, workers=2)
    wait(lambda: len(trainings(tmp_path)) >= 3, process)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive  # workers do not outlive the process that they work for
    kept = len(trainings(tmp_path))
    assert 3 <= kept < TRAININGS
    assert not (tmp_path / "results.json").exists()
    again = shown(tmp_path)
    assert len(trained) == TRAININGS - kept
    assert again.numbers["seconds"]["trainings_from_before"] == kept
    assert f"From before: {kept} of {TRAININGS} trainings." in again.err
    assert lasting(again.numbers) == lasting(undisturbed.numbers)
    assert (tmp_path / "table.txt").read_text() == (undisturbed.folder / "table.txt").read_text()


def check_stopped(err: str, folder: Path) -> None:
    last = err.splitlines()[-1]
    assert last.startswith("Stopped. ")
    assert last.endswith(f" of {TRAININGS} trainings are kept in {folder}. To continue: calibayes compare")
    assert 0 < int(last.split()[1]) <= len(trainings(folder)) < TRAININGS
    assert "Traceback" not in err


@pytest.mark.slow
def test_ctrl_c_with_workers_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    process = start(tmp_path, workers=2)
    wait(lambda: len(trainings(tmp_path)) >= 2, process)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all processes
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    check_stopped(err, tmp_path)


def test_ctrl_c_without_workers_does_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = jobs.train

    def interrupted(task: Task, settings: Settings, run: MethodRun) -> dict[str, Any]:
        if len(trainings(tmp_path)) == 2:
            threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
            settings = replace(settings, epochs=10_000)  # caught in the midst of it
        return train(task, settings, run)

    monkeypatch.setattr(jobs, "train", interrupted)
    err = io.StringIO()
    aside = Console(file=err, highlight=False)
    with pytest.raises(SystemExit) as caught:
        run_and_print(TINY, tmp_path, console=aside, aside=aside, command="calibayes compare", task=BLOBS, workers=1)
    assert caught.value.code == 130
    check_stopped(err.getvalue(), tmp_path)
    assert len(trainings(tmp_path)) == 2


def test_a_training_that_fails_is_named_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = jobs.train

    def failing(task: Task, settings: Settings, run: MethodRun) -> dict[str, Any]:
        if run.lam == 10.0:
            raise ArithmeticError("too much")
        return train(task, settings, run)

    monkeypatch.setattr(jobs, "train", failing)
    with pytest.raises(SweepError, match=r"^The training of CA-FNN λ=10 seed 0 failed: ArithmeticError: too much$"):
        shown(tmp_path)
    monkeypatch.setattr(jobs, "train", train)
    kept = len(trainings(tmp_path))
    assert 0 < kept < TRAININGS
    assert computed(tmp_path)["seconds"]["trainings_from_before"] == kept


@pytest.mark.slow
def test_two_processes_in_one_folder_both_finish_with_the_same_numbers(
    undisturbed: Shown, trained: list[MethodRun], tmp_path: Path
) -> None:
    process = start(tmp_path, workers=1)
    wait(lambda: bool(trainings(tmp_path)), process)
    here = shown(tmp_path)
    _, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert "damaged" not in err + here.err
    assert list(tmp_path.rglob(".*")) == []
    numbers = json.loads((tmp_path / "results.json").read_text())
    assert lasting(numbers) == lasting(here.numbers) == lasting(undisturbed.numbers)
    trained.clear()
    assert lasting(computed(tmp_path)) == lasting(undisturbed.numbers)
    assert trained == []


def test_a_damaged_training_is_found_and_done_again(undisturbed: Shown, trained: list[MethodRun]) -> None:
    folder = undisturbed.folder
    torn, altered = trainings(folder)[3], next((folder / "runs").glob("ca-bnn-seed1-test-*"))
    torn.write_bytes(torn.read_bytes()[:-9])
    content = bytearray(altered.read_bytes())
    content[-5] ^= 1
    altered.write_bytes(content)
    again = shown(folder)
    assert len(trained) == 1
    for path in (torn, altered):
        assert f"{path.name} is damaged: " in again.err
    assert again.err.count("It is computed again.") == 2
    assert lasting(again.numbers) == lasting(undisturbed.numbers)


@pytest.mark.slow
def test_more_seeds_and_candidates_take_up_what_is_there(undisturbed: Shown, trained: list[MethodRun]) -> None:
    computed(undisturbed.folder, replace(TINY, seeds=3))
    assert {run.seed for run in trained} == {2}
    assert len(trained) == 4
    trained.clear()
    shown(undisturbed.folder, replace(TINY, seeds=1, lams=(3.0, 10.0, 30.0)))
    assert {run.lam for run in trained} == {30.0}
    assert len(trained) == 3
    predictions = {path.name for path in (undisturbed.folder / "predictions").iterdir()}
    assert len(predictions) == 16  # those of seeds that are not part of this comparison are gone
    assert all("seed0" in name for name in predictions)


def test_another_setting_in_the_same_folder_is_another_training(undisturbed: Shown, trained: list[MethodRun]) -> None:
    runs = {path: path.read_bytes() for path in (undisturbed.folder / "runs").iterdir()}
    computed(undisturbed.folder, replace(TINY, seeds=1, lams=(3.0,), betas=(0.1,), epochs=2))
    assert len(trained) == 4
    assert all(path.read_bytes() == content for path, content in runs.items())
    trained.clear()
    assert lasting(computed(undisturbed.folder)) == lasting(undisturbed.numbers)
    assert trained == []


@pytest.mark.slow
def test_results_of_another_data_set_are_not_replaced_in_silence(tmp_path: Path) -> None:
    few = replace(TINY, seeds=1, lams=(3.0,), betas=(0.1,), epochs=1)
    assert "will be replaced" not in shown(tmp_path, few).err
    assert "will be replaced" not in shown(tmp_path, few).err
    (tmp_path / "report.html").write_text("of the points")
    said = shown(tmp_path, few, replace(BLOBS, name="others", title="Other points")).err
    assert f"{tmp_path} contains a comparison on Points in the plane: its table and page will be replaced." in said
    assert not (tmp_path / "report.html").exists(), "the page is written last, which is left out here"


CHANGES: list[dict[str, Any]] = [
    {"train": 90},
    {"validation": 70},
    {"epochs": 2},
    {"batch_size": 16},
    {"learning_rate": 0.01},
    {"samples": 2},
    {"predictive_samples": 2},
    {"prior_std": 0.2},
    {"init_std": 0.03},
]


def test_whatever_changes_a_training_makes_it_another_one() -> None:
    tasks = [BLOBS, replace(BLOBS, name="other"), replace(BLOBS, network=wider)]
    settings = [TINY, *(replace(TINY, **change) for change in CHANGES)]
    pairs = [(BLOBS, each) for each in settings] + [(task, TINY) for task in tasks[1:]]
    keys = {TrainingRecords.of(task, each).training(MethodRun("ca-bnn", 3.0, 0.1, 0)).key for task, each in pairs}
    assert len(keys) == len(pairs)
    of_a_training = {name for change in CHANGES for name in change}
    others = {
        "seeds",
        "test",
        "lams",
        "betas",
        "methods",
        "baselines",
        "method_settings",
    }  # these say which trainings there are, not how one goes
    assert of_a_training | others == set(vars(TINY))
    for name, value in {"seeds": 9, "test": 10, "lams": (1.0,), "betas": (1.0,), "methods": ("ca-bnn",)}.items():
        records = TrainingRecords.of(BLOBS, replace(TINY, **{name: value}))  # type: ignore[arg-type]
        assert records.training(MethodRun("ca-bnn", 3.0, 0.1, 0)).key in keys


def wider() -> nn.Module:
    return MLP(2, (17,), 3)


def test_a_smaller_test_set_needs_no_training(undisturbed: Shown, trained: list[MethodRun]) -> None:
    numbers = computed(undisturbed.folder, replace(TINY, test=100))
    assert trained == []
    assert numbers["task"]["test"] == numbers["contenders"][0]["seeds"][0]["test"]["n"] == 100
