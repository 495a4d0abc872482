"""Classifiers whose true calibration is known."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["classifier", "says"]


def classifier(n: int, temperature: float, seed: int, classes: int = 4) -> tuple[Tensor, Tensor]:
    """Probabilities and labels of a classifier that is calibrated in every class at temperature 1, and overconfident below."""
    generator = torch.Generator().manual_seed(seed)
    logits = 1.5 * torch.randn(n, classes, generator=generator, dtype=torch.float64)
    targets = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
    return (logits / temperature).softmax(-1), targets


def says(confidence: Tensor, right: Tensor, seed: int, classes: int = 2) -> tuple[Tensor, Tensor]:
    """Two classes: the decision is class 0 with this confidence, and right with this probability."""
    generator = torch.Generator().manual_seed(seed)
    correct = torch.rand(len(confidence), generator=generator, dtype=torch.float64) < right
    return torch.stack((confidence, 1 - confidence), -1), (~correct).long()
