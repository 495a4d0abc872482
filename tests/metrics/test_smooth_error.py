"""Smooth calibration errors of replicates, beside those computed one by one."""

from __future__ import annotations

import torch

from calibayes.metrics.confidence_cells import Cells
from calibayes.metrics.smooth_error import smooth_error, smooth_errors


def test_replicates_have_the_errors_that_they_have_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    r = torch.rand(500, generator=generator).double().sort().values
    right = torch.rand(6, 500, generator=generator).double() * r
    weights = torch.rand(6, 500, generator=generator).double() + right
    together = smooth_errors(Cells(r, right, weights - right))
    alone = torch.tensor([smooth_error(Cells(r, *each)) for each in zip(right, weights - right, strict=True)])
    torch.testing.assert_close(together, alone.double(), atol=5e-4, rtol=0)
    assert together.std() > 1e-3
