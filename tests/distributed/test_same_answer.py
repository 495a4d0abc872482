"""One, two and three processes at the same batch size give the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.distributed import trainings
from tests.distributed.launch import torchrun

pytestmark = pytest.mark.processes

Results = dict[int, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of each process of each group."""
    found: Results = {}
    for processes in (1, 2, 3):
        folder = tmp_path_factory.mktemp(f"processes{processes}")
        torchrun(processes, Path(trainings.__file__), str(folder))
        found[processes] = [torch.load(folder / f"rank{rank}.pt") for rank in range(processes)]
    return found


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("name", trainings.cases())
def test_weights_and_metrics_are_those_of_a_single_process(name: str, processes: int, results: Results) -> None:
    alone = results[1][0][name]
    least = 2 if name == "stopped early" else 40
    assert alone["steps"] >= least
    for rank in range(processes):
        here = results[processes][rank][name]
        assert here["steps"] == alone["steps"]
        for key, value in alone["weights"].items():
            assert torch.allclose(here["weights"][key].double(), value.double(), rtol=1e-10, atol=1e-10), (rank, key)
        for row, expected in zip(here["epochs"], alone["epochs"], strict=True):
            assert row == pytest.approx(expected, rel=1e-9, abs=1e-9), rank
        for key, value in results[processes][0][name]["weights"].items():
            assert torch.equal(here["weights"][key], value), "processes drift apart"


def test_the_trainings_differ(results: Results) -> None:
    """So that the comparison above cannot be one of like with like by mistake."""
    first = {name: found["epochs"][-1]["total"] for name, found in results[1][0].items() if "samples" not in name}
    assert len(set(first.values())) == len(first)


@pytest.mark.parametrize("processes", [1, 2, 3])
@pytest.mark.parametrize("name", trainings.cases())
def test_prediction_runs_its_own_share_of_the_examples_in_each_process(name: str, processes: int, results: Results) -> None:
    samples = 4 if "bnn" in trainings.cases()[name]["scheme"] else 1
    shares = {1: [10], 2: [5, 5], 3: [3, 3, 4]}[processes]
    for rank, share in enumerate(shares):
        rows = results[processes][rank][name]["rows"]
        assert rows == {"shared": [share] * samples, "alone": [10] * samples}
