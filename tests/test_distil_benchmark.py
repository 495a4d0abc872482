"""The benchmark of distillation: the share that is kept, and the tables that were written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.distil import kept, table

RESULTS = Path(__file__).parents[1] / "results" / "benchmarks"


def rows(gains: list[float], shares: list[float]) -> list[dict[str, dict[str, float]]]:
    """One network scores 1, the ensemble less by its gain, and the student by a share of that."""
    return [
        {"one network": {"nll": 1.0}, "student": {"nll": 1.0 - share * gain}, "ensemble of 10": {"nll": 1.0 - gain}}
        for gain, share in zip(gains, shares, strict=True)
    ]


def test_a_share_that_is_the_same_for_all_seeds_is_certain() -> None:
    share = kept(rows([0.1, 0.2, 0.15], [0.6, 0.6, 0.6]), "student", "nll")
    assert share is not None
    assert (share.low, share.value, share.high) == pytest.approx((0.6, 0.6, 0.6))


def test_the_share_is_that_of_the_mean_gains_with_a_t_interval() -> None:
    share = kept(rows([0.1, 0.3], [0.2, 0.6]), "student", "nll")
    assert share is None  # two seeds, one gain three times the other: no clear gain
    share = kept(rows([0.2, 0.22, 0.18], [0.5, 0.6, 0.4]), "student", "nll")
    assert share is not None
    assert share.value == pytest.approx((0.1 + 0.132 + 0.072) / 0.6)
    rest = [0.1 - 0.2 * share.value, 0.132 - 0.22 * share.value, 0.072 - 0.18 * share.value]
    error = (sum(each**2 for each in rest) / 2 / 3) ** 0.5 / 0.2
    assert share.high - share.value == pytest.approx(4.30265 * error, rel=1e-5)


def test_an_ensemble_without_a_gain_has_nothing_to_keep() -> None:
    assert kept(rows([0.01, -0.02, 0.005], [1.0, 1.0, 1.0]), "student", "nll") is None


@pytest.mark.parametrize("task", ["fashion-mnist", "digits"])
def test_the_tables_are_those_of_the_numbers(task: str) -> None:
    record = json.loads((RESULTS / "distil.json").read_text())[task]
    assert len(record["rows"]) == record["seeds"] >= 3
    lines = table(record["title"], record["rows"], record["cost"])
    assert "\n".join(lines) in (RESULTS / "distil.txt").read_text()
