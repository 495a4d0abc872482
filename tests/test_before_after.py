"""The rows of two checkouts, timed turn by turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from benchmarks.before_after import RowError, RowProcess, measure, repeats_of, verdict, worktree
from benchmarks.row_server import ROWS, RowServer
from benchmarks.training_step import NETWORKS

ROOT = Path(__file__).parents[1]
ROW = "step: MLP 64-256-256-10: plain PyTorch"


class Fake:
    """Answers at once, and notes what it was asked."""

    def __init__(self, name: str, calls: int, seconds: float, asked: list[str]) -> None:
        self.name, self.calls, self.seconds, self.asked = name, calls, seconds, asked

    def prepare(self, row: str) -> int:
        return self.calls

    def turn(self, calls: int) -> float:
        self.asked.append(f"{self.name}{calls}")
        return self.seconds


def test_turns_alternate_with_as_many_calls_in_both() -> None:
    asked: list[str] = []
    pair = cast(Any, [Fake("a", 7, 2.0, asked), Fake("b", 5, 3.0, asked)])
    before, after = measure("row", pair, repeats=3)
    assert asked == ["a5", "b5", "b5", "a5", "a5", "b5"]
    assert after.over(before) == 1.5


@pytest.mark.parametrize(("low", "high", "told"), [(1.01, 1.2, "slower"), (0.9, 0.99, "faster"), (0.9, 1.1, "")])
def test_a_change_is_told_where_the_quartiles_agree(low: float, high: float, told: str) -> None:
    assert verdict(low, high) == told


def test_rows_are_those_of_the_core_table() -> None:
    assert len(ROWS) == 8 * len(NETWORKS)
    for network, (_, repeats) in NETWORKS.items():
        assert repeats_of(f"step: {network}: Point") == repeats
        assert repeats_of(f"predict: {network}: S=20") == 11


def test_a_server_times_the_row_that_it_holds() -> None:
    server = RowServer()
    calls = server.answer({"row": ROW})["calls"]
    assert calls >= 1
    assert server.answer({"calls": 2})["seconds"] > 0
    with pytest.raises(KeyError, match="nothing"):
        server.answer({"row": "nothing"})


@pytest.mark.slow
def test_a_process_runs_the_checkout_and_tells_errors() -> None:
    with RowProcess(ROOT) as process:
        assert process.prepare(ROW) >= 1
        assert process.turn(1) > 0
        with pytest.raises(RowError, match="KeyError: 'nothing'"):
            process.prepare("nothing")
        assert process.prepare(ROW) >= 1


def test_an_unknown_revision_is_an_error() -> None:
    with pytest.raises(RowError, match="no-such-revision"), worktree("no-such-revision"):
        pass
