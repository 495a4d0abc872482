"""The scores that a comparison looks at, on the test examples drawn again and again with replacement."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from calibayes.metrics.arrays import as_predictions
from calibayes.metrics.bins import equal_width, place
from calibayes.metrics.proper import losses
from calibayes.recipes.compare.jobs import Probs

__all__ = ["RESAMPLED", "draw_counts", "replicates"]

RESAMPLED = ("nll", "accuracy", "brier", "ece")
_ROWS = 100  # draws looked at in one go


def draw_counts(n: int, draws: int, *, seed: int = 0) -> Tensor:
    """How often each of ``n`` examples is in each draw, ``[draws, n]``: shared by all that is to be compared.

    Example:
        >>> counts = draw_counts(6, 3)
        >>> counts.sum(1)
        tensor([6, 6, 6])
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    counts = np.empty((draws, n), dtype=np.int16)
    for row in counts:
        row[:] = np.bincount(generator.integers(n, size=n), minlength=n)
    return torch.from_numpy(counts)


def replicates(probs: Probs, targets: Tensor, counts: Tensor, bins: int = 15) -> Tensor:
    r"""The scores of `RESAMPLED` on every draw of the examples, shape ``[4, draws]``.

    All but the last are means over examples. The ECE is $\frac1n \sum_m |\sum_{i \in m} (c_i - r_i)|$: the sum of the
    residuals of each bin is what a draw changes, and bins are those of `calibayes.metrics.ece`.
    """
    found = as_predictions(torch.from_numpy(probs), targets, check=False)
    nll, brier = losses(found)
    n = len(found)
    values = torch.zeros(n, 3 + bins, dtype=torch.float64)
    values[:, 0] = nll.nan_to_num(posinf=0.0)  # an infinite NLL is not a matter of chance; see `mean_difference`
    values[:, 1] = found.correct
    values[:, 2] = brier
    where = place(found.confidence, equal_width(bins), found.probs.dtype)
    values[torch.arange(n), 3 + where] = found.correct - found.confidence
    means = torch.cat([rows.double() @ values for rows in counts.split(_ROWS)]) / n
    return torch.cat([means[:, :3].T, means[:, 3:].abs().sum(-1)[None]])
