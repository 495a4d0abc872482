"""Two processes of a Trainer with the same global batches give the weights and metrics of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.distributed.launch import torchrun

pytest.importorskip("lightning")
from tests.lightning import processes
from tests.lightning.toy import MARKS

pytestmark = MARKS


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two processes found."""
    folder = tmp_path_factory.mktemp("two")
    torchrun(2, Path(processes.__file__), str(folder))
    return [torch.load(folder / f"rank{rank}.pt") for rank in (0, 1)]


@pytest.mark.parametrize("name", processes.cases())
def test_weights_are_those_of_one_process(name: str, two: list[dict[str, Any]]) -> None:
    alone = processes.cases()[name](0, 1)
    for rank in (0, 1):
        for key, value in alone["weights"].items():
            found = two[rank][name]["weights"][key]
            assert torch.allclose(found.double(), value.double(), rtol=1e-10, atol=1e-10), (rank, key)
            assert torch.equal(found, two[0][name]["weights"][key]), "processes drift apart"
        here = two[rank][name]
        if "scores" not in alone:
            continue
        assert here["logged"] == pytest.approx(alone["logged"], rel=1e-6)
        assert torch.allclose(here["probs"], alone["probs"][rank::2], atol=1e-10)  # dealt one by one, none of them twice
        assert here["scores"]["n"] == 51
        for metric in ("nll", "accuracy", "ece", "brier", "mce", "ece_classwise"):
            assert here["scores"][metric] == pytest.approx(alone["scores"][metric], rel=1e-9), metric


def test_the_trainings_differ(two: list[dict[str, Any]]) -> None:
    """So that the comparison above cannot be one of like with like by mistake."""
    found = [float(next(iter(two[0][name]["weights"].values())).sum()) for name in processes.cases()]
    assert len(set(found)) == len(found)
    assert sum("scores" in each for each in two[0].values()) == 3
