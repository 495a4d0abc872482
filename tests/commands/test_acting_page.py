"""The commands of docs/acting.md run as they stand, and print what the page shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from calibayes.cli import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "acting.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "predictions.py"
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@pytest.mark.slow
def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    script, commands = re.fullmatch(r"python - <<'END'\n(.*)\nEND\n(.*)", block, flags=re.DOTALL).groups()  # type: ignore[union-attr]
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)
    printed: dict[str, str] = {}
    for command in commands.splitlines():
        name, *words = shlex.split(command)
        assert name == "calibayes"
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        printed.setdefault(words[0], done.stdout)
    (shown,) = re.findall(r"<!-- train -->\n```text\n(.*?)```", PAGE, flags=re.DOTALL)
    for line in shown.splitlines():
        pattern = NUMBER.sub("#", line)
        same = [each for each in printed["train"].splitlines() if NUMBER.sub("#", each) == pattern]
        assert len(same) == 1, line
        # Another processor may round otherwise.
        numbers = [[float(each) for each in NUMBER.findall(text)] for text in (line, same[0])]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.1)
    frames = [pd.read_csv(name, keep_default_na=False) for name in ("out.csv", "narrower.csv")]
    sizes = [frame["set"].astype(str).str.count(r"\|").mean() + 1 for frame in frames]
    assert 1 <= sizes[1] < sizes[0]
    labels = frames[0]["label"].astype(str)
    held = [label in each.split("|") for label, each in zip(labels, frames[0]["set"].astype(str), strict=True)]
    assert sum(held) / len(held) > 0.85


def test_a_threshold_is_certified_in_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, str(EXAMPLE)], check=True, capture_output=True)
    (command,) = re.findall(r"`calibayes (evaluate naive-bayes\.csv --certify [^`]*)`", PAGE)
    done = CliRunner().invoke(app, shlex.split(command))
    assert done.exit_code == 0, done.output
    (shown,) = re.findall(r"<!-- certify -->\n```text\n(.*?)```", PAGE, flags=re.DOTALL)
    sentence, printed = (NUMBER.split(" ".join(text.replace(",", "").split())) for text in (shown, done.stdout))
    assert "".join(sentence) in "".join(printed)
    told, found = ([float(each) for each in NUMBER.findall(text.replace(",", ""))] for text in (shown, done.stdout))
    assert told == pytest.approx(found[-len(told) :], rel=0.1)  # another processor may round otherwise
    (said, right) = re.findall(r"This classifier says (\d+) % and is right (\d+) % of the time", PAGE)[0]
    assert f"it says {said} %, it is right {right} %" in " ".join(done.stdout.split())


def test_the_costs_of_the_page_can_be_read(tmp_path: Path) -> None:
    from calibayes.files.cost_file import read_cost_file

    (text,) = re.findall(r"```text\n(action,.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "costs.csv").write_text(text)
    found = read_cost_file(tmp_path / "costs.csv", ("healthy", "ill"))
    assert found.actions == ("send home", "treat")
    assert found.abstain_cost == 6
