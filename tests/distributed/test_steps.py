"""The calibration term in a training loop of one's own is that of the batch of all processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.distributed import steps
from tests.distributed.launch import torchrun

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[dict[str, Any]]]:
    results = {}
    for processes in steps.SIZES:
        folder = tmp_path_factory.mktemp(f"steps{processes}")
        torchrun(processes, Path(steps.__file__), str(folder))
        results[processes] = [torch.load(folder / f"rank{rank}.pt") for rank in range(processes)]
    return results


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("where", ["batch", "held-out", "own terms"])
def test_averaged_gradients_are_those_of_a_single_process(where: str, processes: int, found: Any) -> None:
    alone = found[1][0][where]
    assert alone["terms"][2] > 0
    for rank in range(processes):
        here = found[processes][rank][where]
        assert here["terms"] == pytest.approx(alone["terms"], rel=1e-12)
        for one, other in zip(here["gradients"], alone["gradients"], strict=True):
            assert torch.allclose(one, other, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("processes", [2, 3])
def test_a_group_may_be_a_part_of_all_processes(processes: int, found: Any) -> None:
    for rank in range(processes):
        for one, other in zip(found[processes][rank]["in a part"], found[1][0]["in a part"], strict=True):
            assert torch.allclose(one, other, rtol=1e-10, atol=1e-10), rank
    together = [found[processes][rank]["in a part"] for rank in range(processes - 2, processes)]
    assert all(torch.equal(one, other) for one, other in zip(*together, strict=True))


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_what_processes_have_seen_is_evaluated_together(processes: int, found: Any) -> None:
    for each in found[processes]:
        assert each["streamed"] == pytest.approx(dict.fromkeys(each["streamed"], 0.0), abs=1e-12)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_ctrl_c_in_one_process_stops_all_after_the_same_step(processes: int, found: Any) -> None:
    # A single process sees it at once, several tell each other in the next step.
    assert {each["interrupted"] for each in found[processes]} == {("interrupted", 8 + (processes > 1))}


REFUSED = {
    "data": "DataError: Processes [1, 2] of 3 were given other data or settings than process 0",
    "settings": "DataError: Processes [1, 2] of 3 were given other data or settings than process 0",
    "checkpoint": "DataError: Processes [1, 2] of 3 were given other data or settings than process 0",
    "validation": "DataError: Processes [1, 2] of 3 were given other data or settings than process 0",
    "sampler": "DataError: The DataLoader of `train` has a sampler that gives each process other examples",
    "own order": "DataError: The DataLoader of `train` gives processes [1, 2] other examples than process 0",
    "own forward": "UnsupportedNetworkError: '1' (OwnForward) is a batch norm with its own `forward`",
    "one example": "DataError: ",
    "skipping": "UnsupportedNetworkError: The network runs other batch norms in some processes than in others",
    "drift": "DriftError: Processes [1, 2] have other weights than process 0 after epoch 1",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_shared_is_named_in_every_process(name: str, found: Any) -> None:
    assert bool(found[1][0]["refused"][name]) == (name == "one example")
    for each in found[3]:
        assert each["refused"][name].startswith(REFUSED[name])
