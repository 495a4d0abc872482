"""The shell commands of docs/how-to/export.md run as they stand, and its Python that needs no calibayes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pages import run_commands
from typer.testing import CliRunner

from calibayes.cli import app

for package in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(package)
pytestmark = [pytest.mark.onnx, pytest.mark.slow]

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "export.md").read_text(encoding="utf-8")


def test_the_commands_run_and_the_reader_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    run_commands(block)
    names = {"flowers.onnx", "flowers-torch.pt2", "flowers-torch.md", "flowers.md", "flowers.json", "reader.py"}
    assert names <= {path.name for path in tmp_path.iterdir()}
    (reading,) = re.findall(r"```text\n(from reader.*?)```", PAGE, flags=re.DOTALL)
    script = f"import sys; sys.path.insert(0, '.'); sys.modules['calibayes'] = sys.modules['torch'] = None\n{reading}"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "setosa", found.stderr


def test_errors_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("something else")
    done = CliRunner().invoke(app, ["export", str(tmp_path / "model"), "-o", str(tmp_path / "model.onnx")])
    assert done.exit_code == 2
    assert "cannot be loaded" in " ".join(done.output.split())
