"""The commands of docs/how-to/sweeps.md, and its file of settings, say what they would run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from calibayes.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "sweeps.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(?:text|sh)\n(.*?)```", PAGE, flags=re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line.startswith("calibayes sweep")]
(PLAN,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)


def dry(command: str) -> str:
    name, *words = shlex.split(command, comments=True)
    assert name == "calibayes"
    done = CliRunner().invoke(app, [*words, "--dry-run"])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(autouse=True)
def _beside_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_can_be_run(command: str) -> None:
    assert "trials" in dry(command)


def test_the_page_tells_how_many_trials_there_are() -> None:
    assert "12 trials" in dry(COMMANDS[0])  # three times FNN, nine times CA-FNN
    assert "35 trials" in dry("calibayes sweep plan.toml")  # five seeds of one FNN and of three λ for two schemes
