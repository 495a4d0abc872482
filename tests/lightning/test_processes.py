"""Two and three processes of a Trainer with the same global batches give the weights and metrics of one."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.distributed.launch import python, torchrun

pytest.importorskip("lightning")
from tests.lightning import processes
from tests.lightning.toy import MARKS

pytestmark = [*MARKS, pytest.mark.processes]

Results = dict[int, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of each process of each group."""
    found: Results = {}
    for size in (2, 3):
        folder = tmp_path_factory.mktemp(f"processes{size}")
        torchrun(size, Path(processes.__file__), str(folder), str(size))
        found[size] = [torch.load(folder / f"rank{rank}.pt") for rank in range(size)]
    return found


@cache
def alone(name: str) -> dict[str, Any]:
    """The results of a single process: this one."""
    return processes.cases(1)[name](0, 1)


def check(name: str, here: dict[str, Any], rank: int, size: int) -> None:
    """Fail unless a process has found what a single one does."""
    expected, close = alone(name), {"rel": 1e-10, "abs": 1e-10}
    assert here["steps"] == expected["steps"] >= 50
    for key, value in expected["weights"].items():
        assert torch.allclose(here["weights"][key].double(), value.double(), rtol=1e-10, atol=1e-10), (rank, key)
    for row, other in zip(here["validations"], expected["validations"], strict=True):
        assert row["n"] == processes.HELD_OUT
        assert row == pytest.approx(other, nan_ok=True, **close), rank
    if "scores" in expected:
        assert here["scores"] == pytest.approx(expected["scores"], nan_ok=True, **close), rank
        assert here["logged"] == pytest.approx(expected["logged"], rel=1e-6)  # in float32
        # Dealt one by one, none of them twice.
        assert torch.allclose(here["probs"], expected["probs"][rank::size], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("name", "size"), [(name, size) for size in (2, 3) for name in processes.cases(size)])
def test_weights_and_metrics_are_those_of_one_process(name: str, size: int, results: Results) -> None:
    for rank, found in enumerate(results[size]):
        check(name, found[name], rank, size)
        for key, value in results[size][0][name]["weights"].items():
            assert torch.equal(found[name]["weights"][key], value), "processes drift apart"


def test_lightning_may_start_the_processes(tmp_path: Path) -> None:
    name = "dealt to 2 by Lightning"
    python(processes.__file__, str(tmp_path), "2", name)
    for rank in (0, 1):
        check(name, torch.load(tmp_path / f"rank{rank}.pt")[name], rank, 2)


def test_the_trainings_differ(results: Results) -> None:
    """So that the comparison above cannot be one of like with like by mistake."""
    for size, found in results.items():
        sums = [float(next(iter(found[0][name]["weights"].values())).sum()) for name in processes.cases(size)]
        assert len(set(sums)) == len(sums)
        assert sum(len(each["validations"]) == 2 for each in found[0].values()) == len(sums) - 1
        assert sum("scores" in each for each in found[0].values()) == 4
