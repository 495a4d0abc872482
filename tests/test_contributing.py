"""The files that CONTRIBUTING.md sends people to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SECTION = (ROOT / "CONTRIBUTING.md").read_text().split("## Where do I change …?\n")[1].split("\n## ")[0]
ROWS = [line.strip("|").split("|") for line in SECTION.splitlines() if line.startswith("| ")][1:]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_there_are_ten_everyday_changes() -> None:
    assert len(ROWS) == 10


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_every_file_exists_and_has_what_to_look_for(row: list[str]) -> None:
    change, files, targets = row
    paths = [ROOT / name for name in quoted(files)]
    assert paths
    assert all(path.is_file() for path in paths), change
    assert quoted(targets)
    for target in quoted(targets):
        assert any(target in path.read_text() for path in paths), target
