"""The committed tables are those of the committed records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reproduction.experiments import EXPERIMENTS, experiment
from reproduction.printed_tables import claims_text, summary, table_text
from reproduction.run_experiment import recorded, recorded_claims

RESULTS = Path(__file__).parents[2] / "results" / "reproduction"
THERE = [name for name in EXPERIMENTS if (RESULTS / name / "table.txt").exists()]


def test_there_are_some() -> None:
    assert {"newsgroups-epochs", "newsgroups-lambda"} <= set(THERE)


@pytest.mark.parametrize("name", THERE)
def test_tables_numbers_and_commands_come_from_the_records(name: str) -> None:
    asked = experiment(name)
    parts = recorded(asked, RESULTS)
    assert (RESULTS / name / "table.txt").read_text() == table_text(asked, parts)
    assert json.loads((RESULTS / name / "summary.json").read_text())["parts"] == summary(parts)
    lines = (RESULTS / name / "commands.txt").read_text().splitlines()
    assert lines[1::2] == [f"    {asked.command(part.part)}" for part in parts]


def test_claims_come_from_the_records() -> None:
    found = recorded_claims(RESULTS, "cpu")
    assert (RESULTS / "claims.txt").read_text() == claims_text(found)
    told = json.loads((RESULTS / "claims.json").read_text())["claims"]
    assert [(each["claim"], each["verdict"]) for each in told] == [(each.text, each.verdict) for each in found]
