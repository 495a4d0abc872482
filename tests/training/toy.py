"""A small network and data for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import calibayes as cb


def net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))


def data(n: int = 90, seed: int = 2) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 5, generator=generator)
    return x, (x[:, :3] + 0.5 * torch.randn(n, 3, generator=generator)).argmax(-1)


def trained(train: Any, **settings: Any) -> tuple[Tensor, cb.History]:
    posterior = cb.MeanField(net())
    history = cb.fit(posterior, train, cb.Objective(), **{"epochs": 3, "batch_size": 32, **settings})
    return torch.cat([p.detach().reshape(-1) for p in posterior.parameters()]), history


class Rows(Dataset[tuple[Tensor, int]]):
    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.x[index], int(self.y[index])
