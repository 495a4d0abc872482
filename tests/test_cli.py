"""The command line as users meet it, without a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.methods.own import pair
from typer.testing import CliRunner

import calibayes
from calibayes.cli import app

COMMAND = [sys.executable, "-W", "error", "-c", "from calibayes.cli import app; app(prog_name='calibayes')"]


def run(*words: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_help_leads_to_the_first_command() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "calibayes demo" in done.stdout
    assert "confidence can be trusted" in done.stdout
    assert "--version" in done.stdout


def test_no_command_shows_the_help() -> None:
    assert "calibayes demo" in CliRunner().invoke(app, []).output


def test_version() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"calibayes {calibayes.__version__}\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["demo", "--seeds", "0"], "Expected `seeds` to be a positive integer, but got 0."),
        (["demo", "--out", "taken/demo"], "Cannot write to 'taken/demo': Not a directory. Choose another folder with --out."),
    ],
)
def test_an_error_is_one_line_and_exit_code_2(words: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"calibayes: {message}\n")


@pytest.mark.parametrize("words", [["demo", "--seeds", "many"], ["fly"], ["demo", "--unknown"]])
def test_wrong_usage_is_exit_code_2_and_names_what_is_wrong(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert words[1 if words[-1] == "many" else -1] in done.output


@pytest.mark.slow
def test_the_demo_runs_in_worker_processes_and_says_where_its_files_are(tmp_path: Path) -> None:
    done = run("demo", "--quick", "--out", "there", cwd=tmp_path, PYTHONIOENCODING="ascii")  # not even a λ can be printed
    assert done.returncode == 0, done.stderr
    for name in ("reliability.png", "results.json", "table.txt"):
        assert (tmp_path / "there" / name).stat().st_size > 0
        assert str(Path("there") / name) in done.stdout
    assert "CA-BNN" in done.stdout
    assert "[10/10] " in done.stderr
    assert "Traceback" not in done.stderr
    numbers = json.loads((tmp_path / "there" / "results.json").read_text(encoding="utf-8"))
    assert numbers["settings"]["seeds"] == 1
    assert "--quick" in numbers["command"]
    assert str(tmp_path) not in json.dumps(numbers)


def test_methods_lists_all_with_their_settings_and_so_does_the_help() -> None:
    with pair():
        done = CliRunner().invoke(app, ["methods"])
        told = CliRunner().invoke(app, ["train", "--help"])
    assert (done.exit_code, told.exit_code) == (0, 0)
    for name in (*calibayes.METHODS, "pair"):
        assert re.search(rf"^ +{name} ", done.output, flags=re.MULTILINE), name
        assert re.search(rf"\b{name}: ", told.output), name
    assert "lam=2, loudness=1" in done.output
    assert "Several plain networks" in " ".join(told.output.split())
