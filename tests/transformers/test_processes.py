"""Two processes end with the weights of one that has the same global batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.distributed.launch import torchrun
from tests.transformers import processes

pytestmark = pytest.mark.transformers


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, int], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("processes")
    results = {}
    for size in (1, 2):
        torchrun(size, Path(processes.__file__), str(folder))
        for rank in range(size):
            results[size, rank] = torch.load(folder / f"size{size}rank{rank}.pt")
    return results


@pytest.mark.parametrize("rank", [0, 1])
def test_weights_and_losses_are_those_of_a_single_process(rank: int, found: Any) -> None:
    alone, here = found[1, 0], found[2, rank]
    assert alone["weights"].dtype == torch.float64
    assert min(alone["calibration"]) > 0.01
    assert float((here["weights"] - alone["weights"]).abs().max()) < 1e-10
    if rank == 0:
        assert here["loss"] == pytest.approx(alone["loss"], rel=1e-6)
        assert here["calibration"] == pytest.approx(alone["calibration"], rel=1e-10)


@pytest.mark.parametrize("rank", [0, 1])
def test_evaluation_and_prediction_are_those_of_a_single_process(rank: int, found: Any) -> None:
    alone, here = found[1, 0], found[2, rank]
    assert here["scores"] == pytest.approx(alone["scores"], rel=1e-9)
    torch.testing.assert_close(here["probs"], alone["probs"], rtol=1e-9, atol=1e-12)
