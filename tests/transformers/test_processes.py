"""Two and three processes end with the weights of one that has the same global batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.distributed.launch import python, torchrun
from tests.transformers import processes

pytestmark = [pytest.mark.transformers, pytest.mark.processes]

Results = dict[int, list[dict[str, Any]]]
LAUNCHED = "ca-bnn, R=4"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of each process of each group; a single one is this."""
    found: Results = {1: [{name: train(tmp_path_factory.mktemp("alone"), 1) for name, train in processes.cases().items()}]}
    for size in (2, 3):
        folder = tmp_path_factory.mktemp(f"processes{size}")
        torchrun(size, Path(processes.__file__), str(folder))
        found[size] = [torch.load(folder / f"rank{rank}.pt") for rank in range(size)]
    return found


def check(here: dict[str, Any], alone: dict[str, Any], rank: int) -> None:
    """Fail unless a process has found what a single one has."""
    assert alone["weights"].dtype == torch.float64
    assert here["steps"] == alone["steps"] == len(alone["loss"]) >= 50
    torch.testing.assert_close(here["weights"], alone["weights"], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(here["probs"], alone["probs"], rtol=1e-10, atol=1e-10)
    if rank == 0:  # which is the one that logs
        assert here["loss"] == pytest.approx(alone["loss"], rel=1e-6)
        assert here["calibration"] == pytest.approx(alone["calibration"], rel=1e-10, abs=1e-10)
    for row, expected in zip(here["scores"], alone["scores"], strict=True):
        assert row == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", processes.cases())
def test_weights_losses_and_scores_are_those_of_a_single_process(name: str, size: int, results: Results) -> None:
    assert len(results[1][0][name]["scores"]) == processes.EPOCHS
    for rank, here in enumerate(results[size]):
        check(here[name], results[1][0][name], rank)
        assert torch.equal(here[name]["weights"], results[size][0][name]["weights"]), "processes drift apart"


def test_accelerate_may_start_the_processes(tmp_path: Path, results: Results) -> None:
    # Not --cpu, with which accelerate leaves it to MPI to start more than one process; the script itself uses no GPU.
    words = ("--multi_gpu", "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no")
    python(
        *("-m", "accelerate.commands.launch", *words, "--main_process_port", "0"),
        *(processes.__file__, str(tmp_path), LAUNCHED),
    )
    for rank in (0, 1):
        check(torch.load(tmp_path / f"rank{rank}.pt")[LAUNCHED], results[1][0][LAUNCHED], rank)


def test_the_trainings_differ(results: Results) -> None:
    """So that the comparison above cannot be one of like with like by mistake."""
    sums = [float(found["weights"].sum()) for found in results[1][0].values()]
    assert len(set(sums)) == len(sums)
    for name, found in results[1][0].items():
        assert (min(found["calibration"]) > 0.01) == (not name.startswith(("fnn", "bnn"))), name
