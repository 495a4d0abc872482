"""The committed tables are those of the committed records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from reproduction.claim_verdicts import PaperClaim
from reproduction.experiments import EXPERIMENTS, experiment, outputs_of
from reproduction.printed_tables import claims_text
from reproduction.run_experiment import recorded, recorded_claims, recorded_followup_claims
from reproduction.shift.fill_page import filled

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "reproduction"
SHIFT_PAGE = ROOT / "docs" / "explanation" / "shift.md"
THERE = [name for name in EXPERIMENTS if (RESULTS / name / "table.txt").exists()]


def test_there_are_some() -> None:
    assert {"newsgroups-epochs", "newsgroups-lambda"} <= set(THERE)


@pytest.mark.parametrize("name", THERE)
def test_tables_numbers_and_commands_come_from_the_records(name: str) -> None:
    asked = experiment(name)
    parts, outputs = recorded(asked, RESULTS), outputs_of(asked)
    assert (RESULTS / name / "table.txt").read_text() == outputs.table_text(asked, parts)
    assert json.loads((RESULTS / name / "summary.json").read_text())["parts"] == outputs.summary(parts)
    lines = (RESULTS / name / "commands.txt").read_text().splitlines()
    assert lines[1::2] == [f"    {asked.command(part.part)}" for part in parts]


@pytest.mark.parametrize(("name", "judged"), [("claims", recorded_claims), ("followup-claims", recorded_followup_claims)])
def test_claims_come_from_the_records(name: str, judged: Callable[[Path, str], list[PaperClaim]]) -> None:
    found = judged(RESULTS, "cpu")
    assert (RESULTS / f"{name}.txt").read_text() == claims_text(found, followup=name == "followup-claims")
    told = json.loads((RESULTS / f"{name}.json").read_text())["claims"]
    assert [(each["claim"], each["verdict"]) for each in told] == [(each.text, each.verdict) for each in found]


def test_the_tables_of_the_page_on_shift_come_from_the_records() -> None:
    page = SHIFT_PAGE.read_text(encoding="utf-8")
    assert filled(page, RESULTS) == page
