"""The script that each process of `check_with_processes` runs; its only argument is the folder with the subjects."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import torch

from calibayes.testing.process_checks import trained_results

__all__: list[str] = []


def _main(folder: Path) -> None:
    torch.set_num_threads(1)
    subjects = pickle.loads((folder / "subjects.pickle").read_bytes())
    results = {name: trained_results(subject, group="auto") for name, subject in subjects.items()}
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    torch.save(results, folder / f"rank{rank}.pt")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
