r"""The test of "this classifier is calibrated": the squared kernel calibration error beside what chance makes of it.

With confidences $r_i$, correctness $c_i$, weights $w_i$ that sum to 1 and residuals $e_i = w_i (c_i - r_i)$, the statistic is
the kernel form over all pairs of different examples,

$$ T = e^\top K e - \sum_i e_i^2, \qquad K_{ij} = e^{-|r_i - r_j|/\gamma} . $$

If the classifier is calibrated, decision $i$ is right with probability $r_i$, whatever the others are. So right and wrong are
redrawn from the confidences $B$ times, and the p-value is the share of statistics, the observed one among them, that are at
least as large as the observed one. That is exact for every $n$: no normal distribution is assumed, and at level $\alpha$ a
calibrated classifier is rejected with probability at most $\alpha$.

As $c^2 = c$, the sum over $i = j$ is linear in the residuals, $\sum_i e_i^2 = \text{const} + \sum_i w_i (1 - 2 r_i) e_i$.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from calibayes.calibration.kernel import kernel_features
from calibayes.metrics.bins import equal_width
from calibayes.metrics.confidence_cells import Cells
from calibayes.metrics.null_distribution import null_of_cells
from calibayes.threads import in_one_thread

__all__ = ["DRAWS", "SMALLEST", "calibration_p_value", "p_values", "rejects"]

DRAWS = 999
SMALLEST = 1 / (DRAWS + 1)  # the smallest p-value that so many draws can give
_SINGLE = 1024  # examples up to which each is drawn on its own
_FINE = 128  # cells of equal width beyond that, and as many of equal mass
_AT_ONCE = 1 << 22  # numbers drawn at a time


def calibration_p_value(cells: Cells, squares: Tensor, width: float, seed: int) -> float:
    r"""The p-value of "calibrated"; NaN for a single example.

    Args:
        cells: right and wrong decisions by confidence. Those of equal confidence are in an order of their own (see
            `sorted_cells`), not that of the data, so that the same data in any order give the same bits.
        squares: $\sum w_i^2$ over the examples of each cell.
        width: $\gamma$.
        seed: of the draws.
    """
    if float(squares.sum()) > (1 - 1e-12) * float(cells.total) ** 2:
        return math.nan  # there is no pair
    if bool(((cells.wrong > 0) & (cells.r >= 1)).any()) or bool(((cells.right > 0) & (cells.r <= 0)).any()):
        return SMALLEST  # what has happened could not happen if it were calibrated, and pairs may not show it
    return float(p_values(cells, squares, width, seed))


@in_one_thread
def p_values(cells: Cells, squares: Tensor, width: float, seed: int) -> Tensor:
    r"""The p-values of several outcomes of the same examples, one for each leading index of right and wrong.

    The draws depend on the confidences, the weights and the seed alone, so all outcomes are compared with the same ones. Beyond
    1,024 examples, those of nearly the same confidence are put into one cell first: the statistic is then that of some 256
    cells, for the data and for the draws alike. Arguments as `calibration_p_value`.
    """
    cells, squares = _gathered(cells, squares)
    mass = cells.mass.reshape(-1, len(cells.r))[0]
    weight, r = float(mass.sum()), cells.r.clamp(0, 1)
    own = squares / (mass * weight) * (1 - 2 * r)
    observed = _statistic(cells.residual, own, cells.r, width)
    # What differs by rounding alone is equal: the data themselves are among what can be drawn.
    least = observed - 1e-9 * (observed.abs() + float((squares * r * (1 - r)).sum()) / weight**2)
    as_large = torch.ones_like(least)
    rows = max(1, _AT_ONCE // len(r))
    for part, start in enumerate(range(0, DRAWS, rows)):
        drawn = null_of_cells(Cells(cells.r, mass, mass * 0), squares, min(rows, DRAWS - start), seed, part)
        ordered = _statistic(drawn, own, cells.r, width).sort().values
        as_large += len(ordered) - torch.searchsorted(ordered, least)
    return as_large / (DRAWS + 1)


def rejects(p_value: float, level: float) -> bool:
    """Return True if "calibrated" is rejected at this level of confidence; the smallest p-value possible always rejects."""
    return p_value <= max(1 - level, SMALLEST) * (1 + 1e-9)


def _statistic(residual: Tensor, own: Tensor, r: Tensor, width: float) -> Tensor:
    """$T$ up to a constant, of residuals ``[..., C]``."""
    return kernel_features(r, residual, width).square().sum(-1) - residual @ own


def _gathered(cells: Cells, squares: Tensor) -> tuple[Cells, Tensor]:
    """The same with few cells; cells of equal confidence stay together, because what splits them could be correctness."""
    if len(cells.r) <= _SINGLE:
        return cells, squares
    ranks = torch.linspace(0, len(cells.r) - 1, _FINE, dtype=torch.float64).long()
    edges = torch.cat((equal_width(_FINE), cells.r[ranks])).unique()
    place = torch.bucketize(cells.r, edges)
    mass = cells.mass.reshape(-1, len(place))[0]
    gathered = [
        values.new_zeros(*values.shape[:-1], len(edges) + 1).index_add_(-1, place, values)
        for values in (mass, mass * cells.r, squares, cells.right, cells.wrong)
    ]
    filled = gathered[0] > 0
    mass, confidence, squares, right, wrong = (values[..., filled] for values in gathered)
    return Cells(confidence / mass, right, wrong), squares
