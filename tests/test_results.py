"""The figures in the README are those of the committed results."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from benchmarks.peers.summary import tables

from calibayes.metrics import METRICS

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


def test_the_readmes_speed_of_the_metrics_is_the_one_that_was_measured() -> None:
    found = json.loads((ROOT / "results" / "benchmarks" / "metrics.json").read_text())["metrics: n=1000000"]
    words = " ".join(README.split())
    assert f"takes {found['evaluate, no intervals']['ratio']:.1f} times as long as torchmetrics' single ECE" in words
    assert f"from 1,000 resamplings {found['ECE, 1,000 replicates']['ratio']:.1f} times" in words


def test_the_readmes_tables_of_other_libraries_are_those_that_were_measured() -> None:
    peers = json.loads((ROOT / "results" / "benchmarks" / "peers.json").read_text())
    shown = README.split("## Beside other libraries")[1].split("\n## ")[0].splitlines()
    assert [line for line in shown if line.startswith("|")] == [line for line in tables(peers) if line]


def shown_blocks() -> list[tuple[str, str, str]]:
    """Text that pages say comes from a file: the page, the file, and the text."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    pattern = re.compile(r"<!-- (results/\S+) -->\n(.*?)<!-- end -->", re.DOTALL)
    return [
        (page.name, file, text.removeprefix("```text\n").removesuffix("```\n"))
        for page in pages
        for file, text in pattern.findall(page.read_text())
    ]


@pytest.mark.parametrize(("page", "file", "text"), shown_blocks())
def test_what_pages_show_is_what_was_printed(page: str, file: str, text: str) -> None:
    printed = (ROOT / file).read_text().splitlines()
    place = -1
    assert text.strip(), page
    for line in text.splitlines():
        if line.strip() != "…":
            place = printed.index(line, place + 1)  # in the order of the file


def test_pages_show_what_they_should() -> None:
    assert {(page, file) for page, file, _ in shown_blocks()} >= {
        ("README.md", "results/train/output.txt"),
        ("README.md", "results/evaluate/table.txt"),
        ("evaluating.md", "results/evaluate/table.txt"),
        ("comparing.md", "results/compare/table.txt"),
        ("scaling.md", "results/benchmarks/processes.txt"),
        ("scaling.md", "results/benchmarks/growth.txt"),
        ("distil.md", "results/benchmarks/distil.txt"),
    }


def test_the_page_on_metrics_says_of_each_what_the_catalogue_says() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    assert re.findall(r"^\| `(\w+)` \| (.*) \|$", page, flags=re.MULTILINE) == [(each.name, each.about) for each in METRICS]


def test_every_file_that_the_pages_link_exists() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        links = re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text())
        assert [link for link in links if not (page.parent / link).exists()] == [], page
