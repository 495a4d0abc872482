"""The figures in the README are those of the committed results."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_readmes_demo_table_is_the_one_that_was_printed() -> None:
    printed = (ROOT / "results" / "demo" / "table.txt").read_text()
    rows = re.findall(r"^\| ((?:CA-)?[FB]NN) +\|(.*)\|$", README, flags=re.MULTILINE)
    shown = {name: re.findall(r"[\d.]+ ± [\d.]+", cells) for name, cells in rows if "±" in cells}
    assert len(shown) == 4
    for name, cells in shown.items():
        line = next(line for line in printed.splitlines() if line.split()[:1] == [name])
        assert re.findall(r"[\d.]+ ± [\d.]+", line)[:4] == cells


def test_the_readmes_speed_table_is_the_one_that_was_measured() -> None:
    core = json.loads((ROOT / "results" / "benchmarks" / "core.json").read_text())
    labels = ("Point", "MeanField R=1", "MeanField R=1 + WMMCE", "MeanField R=8")
    networks = [key.removeprefix("step: ") for key in core if key.startswith("step: ")]
    assert len(networks) == 3
    for network in networks:
        row = next(line for line in README.splitlines() if line.startswith(f"| {network} "))
        measured = [core[f"step: {network}"][label]["ratio"] for label in labels]
        measured.append(core[f"predict: {network}"]["predict"]["ratio"])
        assert re.findall(r"[\d.]+(?=×)", row.split("|", 2)[2]) == [f"{ratio:.2f}" for ratio in measured]
    form = core["quadratic form: n=1000000"]["quadratic form"]["ratio"]
    assert f"{form:.2f} times a bare `torch.sort`" in README.replace("\n", " ")
