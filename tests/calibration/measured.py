"""The measures as functions, and batches to take them of."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from calibayes.calibration import dece, mmce, sbece, wmmce

__all__ = ["KERNEL_MEASURES", "MEASURES", "batch"]

KERNEL_MEASURES = [wmmce, mmce]
MEASURES: list[Callable[..., Tensor]] = [wmmce, mmce, dece, sbece]


def batch(n: int, classes: int, *leading: int) -> tuple[Tensor, Tensor]:
    probs = torch.randn(*leading, n, classes, dtype=torch.float64).mul(2).softmax(-1)
    targets = torch.where(torch.rand(n) < 0.6, probs.reshape(-1, n, classes)[0].argmax(-1), torch.randint(classes, (n,)))
    return probs, targets
