"""A process that is killed costs nothing but time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.distributed import interrupted
from tests.distributed.launch import torchrun

pytestmark = pytest.mark.processes


def test_a_killed_process_leaves_no_trace_in_the_result(tmp_path: Path) -> None:
    found = []
    for name, deadly in (("whole", 0), ("killed", 250)):  # process 1 has 100 examples an epoch
        folder = tmp_path / name
        folder.mkdir()
        torchrun(2, Path(interrupted.__file__), str(folder), str(deadly), restarts=1)
        assert (folder / "killed").exists() == (deadly > 0)
        assert (folder / "attempts0").read_text() == str(int(deadly > 0))
        found.append([torch.load(folder / f"rank{rank}.pt") for rank in range(2)])
    (whole, _), killed = found
    assert whole["asked"] == 400
    for each in killed:
        # What was left after two epochs and a half, and a few batches more, but not all of it from the start.
        assert 150 <= each["asked"] <= 200
        assert each["steps"] == whole["steps"] == 40
        for name, value in whole["weights"].items():
            assert torch.equal(each["weights"][name], value), name
