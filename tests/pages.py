"""Pages of the documentation whose code needs packages that may be missing, and so cannot be doctests."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from calibayes.cli import app

DOCS = Path(__file__).parents[1] / "docs"


def run_page(name: str) -> dict[str, Any]:
    """Run the Python blocks of a page from top to bottom, as one program; returns its names.

    A line of an error is that of the page.
    """
    path = DOCS / name
    text = path.read_text()
    names: dict[str, Any] = {"__name__": "page"}
    for block in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        lines = "\n" * (text[: block.start(1)].count("\n"))
        exec(compile(lines + block[1], str(path), "exec"), names)
    return names


def run_commands(block: str) -> None:
    """Run a block of a page that makes a file with a Python script, then types commands of calibayes, in the current folder."""
    found = re.fullmatch(r"python - <<'END'\n(.*)\nEND\n(.*)", block, flags=re.DOTALL)
    assert found is not None, block
    subprocess.run([sys.executable, "-W", "error", "-c", found[1]], check=True)
    for command in found[2].splitlines():
        name, *words = shlex.split(command)
        assert name == "calibayes"
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
