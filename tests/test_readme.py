"""The README's example runs as it stands, and the version is the same everywhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import calibayes

ROOT = Path(__file__).parents[1]


def test_every_python_block_of_the_readme_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        command = [sys.executable, "-W", "error", "-c", block]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "accuracy" in done.stdout  # it ends with the scores


def test_every_file_that_the_readme_links_exists() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_citation_names_the_version_of_the_package_and_the_changelog_has_it() -> None:
    assert f"\nversion: {calibayes.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{calibayes.__version__}] - " in (ROOT / "CHANGELOG.md").read_text()
