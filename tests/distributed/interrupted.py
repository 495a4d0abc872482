"""A training that ``torchrun`` starts again after one of its processes has been killed in the middle of an epoch.

Arguments: a folder, and the number of the example at which process 1 is killed (0: never).
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch
from tests.distributed.trainings import data, perceptron
from torch import Tensor
from torch.utils.data import Dataset

import calibayes as cb


class Deadly(Dataset[tuple[Tensor, Tensor]]):
    """Examples one of which, once, kills the process that asks for it."""

    def __init__(self, folder: Path, deadly: int) -> None:
        self.x, self.y = data(0, 200)
        self.mark, self.deadly, self.asked = folder / "killed", deadly, 0

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        self.asked += 1
        if self.asked == self.deadly and os.environ["RANK"] == "1" and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.x[index] + torch.rand(6, dtype=torch.float64), self.y[index]


def main() -> None:
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    torch.manual_seed(0)
    posterior = cb.MeanField(perceptron().double())
    train = Deadly(folder, int(sys.argv[2]))
    history = cb.fit(
        posterior,
        train,
        cb.Objective(lam=10.0),
        batch_size=20,
        epochs=4,
        validation=data(1, 50),
        checkpoint=folder / "checkpoints",
        checkpoint_seconds=0.0,
    )
    rank = os.environ["RANK"]
    found = {"weights": posterior.state_dict(), "steps": len(history.steps), "asked": train.asked}
    torch.save(found, folder / f"rank{rank}.pt")
    (folder / f"attempts{rank}").write_text(os.environ["TORCHELASTIC_RESTART_COUNT"])


if __name__ == "__main__":
    main()
