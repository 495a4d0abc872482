"""`calibayes data` as users meet it, with and without a network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.data.fetching.server import served
from tests.data.real import needs
from typer.testing import CliRunner

from calibayes.cli import app
from calibayes.data.fetching import SETS

COMMAND = [sys.executable, "-W", "error", "-c", "from calibayes.cli import app; app(prog_name='calibayes')", "data"]
SIZE = SETS["newsgroups"].remote.size or 0


def proxied(port: int, folder: Path) -> dict[str, str]:
    """An environment in which every address leads to a port of this machine."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    proxy = f"http://127.0.0.1:{port}"
    return {**kept, "http_proxy": proxy, "https_proxy": proxy, "CALIBAYES_DATA": str(folder)}


def test_without_a_network_there_is_a_line_for_each_and_exit_code_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "get", "cifar10", "resnet20"], env=proxied(1, tmp_path), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    for line, name in zip(lines, ("cifar-10-binary.tar.gz", "resnet20-12fca82f.th"), strict=True):
        assert line.startswith("calibayes: Cannot download https://")
        assert "no connection (Connection refused)" in line
        assert f"put it at '{tmp_path / name}'" in line


@pytest.mark.slow
def test_stopped_by_the_user_and_called_again_it_goes_on(tmp_path: Path) -> None:
    part = tmp_path / "20news-bydate.tar.gz.part"
    with served(bytes(SIZE)) as file:  # as many bytes as the official file has, but not those
        file.gate.clear()
        environment = proxied(int(file.url.split(":")[2].split("/")[0]), tmp_path)
        process = subprocess.Popen([*COMMAND, "get", "newsgroups"], env=environment, stderr=subprocess.PIPE, text=True)
        while not (part.exists() and part.stat().st_size == SIZE // 2):
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 130
        assert told.splitlines() == [
            "20news-bydate.tar.gz: 14.5 MB",
            *(f"20news-bydate.tar.gz: {tenth}0 %" for tenth in (1, 2, 3, 4)),
            "Stopped. The partial download is kept; run the same command again to resume it.",
        ]
        file.gate.set()
        again = subprocess.run([*COMMAND, "get", "newsgroups"], env=environment, capture_output=True, text=True, check=False)
        assert file.asked[1]["range"] == f"bytes={SIZE // 2}-"
    assert again.returncode == 2
    assert "does not fit" in again.stderr
    assert "no connection (Tunnel connection failed: 501" in again.stderr  # the second address, by a proxy that refuses
    assert f"has the SHA-256 {file.sha256}, but {SETS['newsgroups'].remote.sha256} was expected" in again.stderr
    assert [path.name for path in tmp_path.iterdir()] == [".newsgroups.lock"]


def test_the_list_says_what_is_missing_and_how_to_get_it(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["data", "list", "--folder", str(tmp_path)])
    assert done.exit_code == 0
    for each in SETS.values():
        assert f"missing: {tmp_path / each.place}" in done.output
        assert f"get it: calibayes data get {each.name}" in done.output
    assert list(tmp_path.iterdir()) == []


@needs("newsgroups", "cifar10", "glove", "resnet20")
def test_what_is_here_is_listed_and_not_fetched() -> None:
    rows = json.loads(CliRunner().invoke(app, ["data", "list", "--json"]).output)
    assert [row["name"] for row in rows] == list(SETS)
    for row in rows:
        assert row["status"] in (("whole", "partial") if row["name"] == "glove" else ("whole",))
        assert row["command"] == f"calibayes data get {row['name']}"
        assert Path(row["path"]).exists()
    done = CliRunner().invoke(app, ["data", "get", "all"])
    assert done.exit_code == 0
    assert len(done.output.splitlines()) == len(SETS)


def test_other_names_are_refused_before_anything_is_done(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["data", "get", "cifar10", "mnist", "--folder", str(tmp_path)])
    assert done.exit_code == 2
    assert "one of newsgroups, cifar10, glove, resnet20, but got 'mnist'" in done.output
    assert list(tmp_path.iterdir()) == []
