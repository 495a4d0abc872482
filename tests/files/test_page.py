"""The shell commands of docs/how-to/files.md run as they stand."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from calibayes.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "files.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=["table", "texts", "images"])
def test_a_block_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script, commands = re.fullmatch(r"python - <<'END'\n(.*)\nEND\n(.*)", block, flags=re.DOTALL).groups()  # type: ignore[union-attr]
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)
    for command in commands.splitlines():
        name, *words = shlex.split(command)
        assert name == "calibayes"
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
