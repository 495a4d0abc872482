"""Points in the plane: a data set that is small enough to train on in no time."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from calibayes.data import Splits


def points(n: int = 90) -> Splits:
    """Three noisy clouds, drawn anew for each part."""

    def part(seed: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        y = torch.arange(n) % 3
        centres = torch.tensor([[0.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
        return centres[y] + torch.randn(n, 2, generator=generator), y

    return Splits(train=part(0), validation=part(1), test=part(2), classes=("a", "b", "c"))


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3))
