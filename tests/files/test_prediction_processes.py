"""Several processes predict a file as one does: the same bytes, the same errors, and nothing left when they are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.files.made import HEADER, rows, table_model, write_csv
from tests.sweeps.acts import wait_for
from tests.test_cli import COMMAND

from calibayes.errors import DataError, InvalidArgumentError
from calibayes.files import predict_file
from calibayes.files.prediction_processes import default_workers

BODY = rows(1000)
LONG = BODY * 90  # eleven blocks: more than are under way at a time with three processes


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_the_output_is_the_same_for_any_number_of_processes(tmp_path: Path, ending: str) -> None:
    labelled = [[*row, f'"{place}", it says'] for place, row in enumerate(LONG)]
    source = write_csv(tmp_path / "in.csv", labelled, (*HEADER, "note"))
    outputs, summaries, said = set(), set(), []
    for workers in (1, 2, 3):
        notes: list[str] = []
        out = tmp_path / f"{workers}{ending}"
        done = predict_file(
            table_model(), source, out, workers=workers, abstain_below=0.9, keep=["note"], samples=2, say=notes.append
        )
        outputs.add(out.read_bytes())
        summaries.add(done)
        said.append(notes)
    assert len(outputs) == len(summaries) == 1
    assert next(iter(summaries)).rows == 90_000
    assert said[0] == said[1] == said[2]


@pytest.mark.slow
def test_what_is_noticed_in_the_rows_is_the_same(tmp_path: Path) -> None:
    strange = [["1.0", f"colour {place}", "2024-01-05", "tiny" if place % 2 else "small"] for place in range(20_000)]
    source, said = write_csv(tmp_path / "in.csv", strange), []
    for workers in (1, 2):
        said.append(list[str]())
        predict_file(table_model(), source, tmp_path / "out.csv", workers=workers, say=said[-1].append)
    assert said[0] == said[1]
    assert "'colour 0'" in said[0][0]
    assert said[0][1].startswith("10,000 rows without a class in 'kind' that the model knows, like 'tiny'")


def _bad_number(body: list[list[str]], row: int) -> None:
    body[row] = ["many", *body[row][1:]]


def _short_row(body: list[list[str]], row: int) -> None:
    body[row] = body[row][:2]


@pytest.mark.parametrize(
    ("first", "second"), [(_bad_number, _short_row), (_short_row, _bad_number), (_bad_number, _bad_number)]
)
def test_the_first_error_of_a_file_is_the_one_of_a_single_process(
    tmp_path: Path, first: Callable[[list[list[str]], int], None], second: Callable[[list[list[str]], int], None]
) -> None:
    body = [list(row) for row in LONG[:40_000]]
    first(body, 30_000)
    second(body, 35_000)
    source = write_csv(tmp_path / "in.csv", body)
    (tmp_path / "out.csv").write_text("old")
    messages = set()
    for workers in (1, 2):
        with pytest.raises(DataError, match="line 30002") as raised:
            predict_file(table_model(), source, tmp_path / "out.csv", workers=workers)
        messages.add(str(raised.value))
    assert len(messages) == 1
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def _stopped(folder: Path, stop: Callable[[subprocess.Popen[str], list[psutil.Process]], object]) -> tuple[int, str]:
    """Run the command with two processes, and stop something once they are there; return the exit code and what was said."""
    table_model().save(folder / "model")
    source = write_csv(folder / "in.csv", LONG)
    process = subprocess.Popen(
        [*COMMAND, "predict", folder / "model", source, "-o", folder / "out.csv", "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    parent = psutil.Process(process.pid)

    def workers() -> list[psutil.Process]:
        return [child for child in parent.children() if "LokyProcess" in " ".join(child.cmdline())]

    wait_for(lambda: process.poll() is not None or len(workers()) == 2)
    children = parent.children(recursive=True)
    stop(process, workers())
    out, err = process.communicate(timeout=120)
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    assert out == ""
    assert "Traceback" not in err
    assert sorted(path.name for path in folder.iterdir()) == ["in.csv", "model"]
    return process.returncode, err


def test_a_process_that_is_killed_is_named_and_leaves_nothing_behind(tmp_path: Path) -> None:
    code, err = _stopped(tmp_path, lambda _, workers: workers[0].kill())
    assert code == 2
    assert err.splitlines()[-1] == (
        "calibayes: A process that predicted rows ended unexpectedly; perhaps memory ran out. Nothing was written. "
        "Try again with fewer of them than 2: --workers 1"
    )


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_and_leaves_nothing_behind(tmp_path: Path) -> None:
    code, err = _stopped(tmp_path, lambda process, _: os.killpg(process.pid, signal.SIGINT))
    assert (code, err) == (130, "Stopped. Nothing was written.\n")


def test_a_small_file_starts_no_processes_and_a_large_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibayes.files.prediction_processes.cores", lambda: 7)
    for name, size, expected in (
        ("a.csv", 99_999_999, 1),
        ("b.csv", 100_000_000, 7),
        ("c.csv.gz", 20_000_000, 7),
        ("d.parquet", 19_999_999, 1),
    ):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
        assert default_workers(tmp_path / name) == expected
    (tmp_path / "folder").mkdir()
    for count, expected in ((1999, 1), (2000, 7)):
        for place in range(count):
            (tmp_path / "folder" / f"{place}.txt").touch()
        assert default_workers(tmp_path / "folder") == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "workers"),
        ({"backend": "slurm"}, "'local', 'ray', 'dask'"),
        ({"address": "tcp://here:1"}, "'tcp://here:1' without one"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, settings: dict[str, object], message: str) -> None:
    source = write_csv(tmp_path / "in.csv", BODY[:9])
    with pytest.raises(InvalidArgumentError, match=message):
        predict_file(table_model(), source, tmp_path / "out.csv", **settings)  # type: ignore[arg-type]
