"""Several processes predict a file as one does: the same bytes, the same errors, and nothing left when they are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
from tests.files.made import HEADER, rows, table_model, write_csv
from tests.sweeps.acts import wait_for
from tests.test_cli import COMMAND

from calibayes.errors import DataError, InvalidArgumentError
from calibayes.files import predict_file
from calibayes.files.prediction_processes import rows_about
from calibayes.files.read_rows import row_blocks

pytestmark = pytest.mark.processes

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


def test_ctrl_c_ends_all_processes_and_leaves_nothing_behind(tmp_path: Path) -> None:
    code, err = _stopped(tmp_path, lambda process, _: os.killpg(process.pid, signal.SIGINT))
    assert (code, err) == (130, "Stopped. Nothing was written.\n")


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".jsonl"])
def test_the_rows_of_a_file_are_estimated(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"in{ending}"
    frame = pd.DataFrame(rows(20_000), columns=list(HEADER))
    if ending == ".parquet":
        frame.to_parquet(path)
    elif ending == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False)
    estimated = rows_about(path, next(row_blocks(path)))
    assert 20_000 / 4 < estimated < 20_000 * 4
    assert estimated == pytest.approx(20_000, rel=0.02) or ending in (".csv.gz", ".jsonl")


def test_processes_are_started_where_the_rest_would_take_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, started = write_csv(tmp_path / "in.csv", LONG[:30_000]), []

    def recorded(predictor: Any, blocks: Any, workers: int) -> Any:
        started.append(workers)
        return map(predictor, blocks)

    monkeypatch.setattr("calibayes.files.prediction_processes.predicted_by_processes", recorded)
    monkeypatch.setattr("calibayes.files.prediction_processes.cores", lambda: 7)
    predict_file(table_model(), source, tmp_path / "one.csv")
    assert started == []
    monkeypatch.setattr("calibayes.files.prediction_processes._WORTHWHILE", 1e-9)
    predict_file(table_model(), source, tmp_path / "several.csv")
    assert started == [7]
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "several.csv").read_bytes()
    predict_file(table_model(), write_csv(tmp_path / "short.csv", BODY), tmp_path / "one.csv")
    assert started == [7]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "workers"),
        ({"backend": "slurm"}, "'local', 'ray', 'dask'"),
        ({"address": "tcp://here:1"}, "'tcp://here:1' without one"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    source = write_csv(tmp_path / "in.csv", BODY[:9])
    with pytest.raises(InvalidArgumentError, match=message):
        predict_file(table_model(), source, tmp_path / "out.csv", **settings)
