"""The shell commands of docs/how-to/files.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.pages import run_commands

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "files.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=["table", "texts", "images"])
def test_a_block_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_commands(block)
