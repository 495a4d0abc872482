r"""The smooth calibration error of Błasiok and Nakkiran (2023), in O(n) by a Fourier transform."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from calibayes.metrics.confidence_cells import Cells, sorted_cells
from calibayes.metrics.prediction_arrays import Array, as_predictions
from calibayes.metrics.scaled_gaps import direction, mixed_noise
from calibayes.threads import in_one_thread

__all__ = ["SmoothGaps", "smooth_ece", "smooth_error", "smooth_errors"]

_FINEST = 1 << 12  # steps of confidence
_FINE = 1 << 10  # of replicates, which need no more digits than chance leaves them


def smooth_ece(probs: Array, targets: Array, *, weights: Array | None = None, check: bool = True) -> float:
    r"""The calibration error without bins: residuals are smoothed by a kernel whose width is the error itself.

    With the Gaussian kernel $K_\sigma$ on $[0, 1]$, reflected at both ends,
    $$\mathrm{smECE}_\sigma = \int_0^1 \Big| \frac1n \sum_i (c_i - r_i) K_\sigma(r_i, t) \Big| \, dt,$$
    and the smooth calibration error is the width $\sigma$ for which $\mathrm{smECE}_\sigma = \sigma$. Unlike the ECE it
    changes little when the predictions do, and there is no number of bins to choose. Arguments as `accuracy`. See Błasiok and
    Nakkiran, "Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing" (2023, https://arxiv.org/abs/2309.12236).

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1]]).expand(100, 2)
        >>> round(smooth_ece(probs, torch.tensor([0] * 70 + [1] * 30)), 4)  # says 0.9, is right 0.7
        0.2
    """
    return smooth_error(sorted_cells(as_predictions(probs, targets, weights, check=check))[0])


def smooth_error(cells: Cells) -> float:
    """The smooth calibration error of cells without leading axes."""
    return float(_fixed_point(_waves(_nodes(cells.r, cells.residual, _FINEST))))


def smooth_errors(cells: Cells) -> Tensor:
    """The smooth calibration errors of replicates, shape ``[B]``, where the masses of the cells are ``[B, C]``."""
    return _fixed_point(_waves(_nodes(cells.r, cells.residual, _FINE)))


class SmoothGaps:
    r"""`calibayes.metrics.scaled_gaps.ScaledGaps` for the smooth calibration error.

    As $\mathrm{smECE}_\sigma$ falls with $\sigma$, the fixed point lies at or below $\hat\sigma$ exactly where
    $\mathrm{smECE}_{\hat\sigma} \le \hat\sigma$: one smoothing tells on which side of the observed error a replicate is.
    ``null`` holds residuals of a calibrated classifier by chance in each cell, shape ``[B, C]``.
    """

    def __init__(self, cells: Cells, replicates: Cells, null: Tensor) -> None:
        self.observed = smooth_error(cells)
        grid = min(_FINEST, max(256, 1 << math.ceil(math.log2(4 / max(self.observed, 4e-3)))))
        gaps = _nodes(cells.r, cells.residual, grid)
        null_gaps = _nodes(cells.r, null, grid)
        self._noise = _waves(_nodes(replicates.r, replicates.residual, grid) - gaps)
        self._null, self._along = _waves(null_gaps), _waves(direction(gaps, null_gaps))

    def errors(self, s: float, *, resampled: bool = False) -> Tensor:
        """The fixed point of every replicate under hypothesis $s$."""
        noise = self._noise if resampled else mixed_noise(self._null, self._noise, s)
        return _fixed_point(noise + s * self._along)

    def truth(self, s: float) -> float:
        """The fixed point of $s$ times the observed gaps."""
        return float(_fixed_point(s * self._along)) if s > 0 else 0.0

    def below(self, s: float, error: float) -> float:
        """The share of replicates under hypothesis $s$ whose error is at most ``error``."""
        sigma = torch.tensor(error, dtype=torch.float64)
        errors = _error_at(sigma, mixed_noise(self._null, self._noise, s) + s * self._along)
        return float((errors <= error * (1 + 1e-9)).double().mean())


@in_one_thread
def _fixed_point(waves: Tensor) -> Tensor:
    r"""The $\sigma$ at which the error is $\sigma$; the error falls as $\sigma$ grows, so halving finds it."""
    low = torch.zeros(waves.shape[:-1], dtype=torch.float64)
    high = torch.ones_like(low)
    steps = 40 if waves.dim() == 1 else 16  # a replicate needs no more digits than chance leaves it
    for _ in range(steps):
        middle = (low + high) / 2
        above = _error_at(middle, waves) > middle
        low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    return (low + high) / 2


def _error_at(sigma: Tensor, waves: Tensor) -> Tensor:
    r"""$\mathrm{smECE}_\sigma$ of waves ``[..., grid + 1]``; ``sigma`` of the shape of the leading axes, or one for all.

    A reflected Gaussian multiplies each cosine wave by a number.
    """
    grid = waves.shape[-1] - 1
    frequency = math.pi * torch.arange(grid + 1, dtype=torch.float64)
    # Dividing a residual between two nodes has smoothed it already, by a variance of a sixth of a squared step.
    variance = (sigma.square() - 1 / (6 * grid**2)).clamp_min(0)
    damped = waves * torch.exp(-0.5 * variance.unsqueeze(-1) * frequency.square())
    # The even extension to [-1, 1] has a real spectrum; its inverse transform is the smoothed residual per unit of r.
    values: Tensor = torch.fft.irfft(damped.to(torch.complex128), n=2 * grid)[..., : grid + 1].abs()
    return 2 * values.sum(-1) - values[..., 0] - values[..., -1]


def _nodes(r: Tensor, residual: Tensor, grid: int) -> Tensor:
    """The residuals on the nodes of a grid, shape ``[..., grid + 1]``: one between two nodes is divided between them."""
    position = r.clamp(0, 1) * grid
    left = position.floor().clamp_max(grid - 1).long()
    right_share = position - left
    nodes = residual.new_zeros(*residual.shape[:-1], grid + 1)
    nodes.index_add_(-1, left, residual * (1 - right_share))
    return nodes.index_add_(-1, left + 1, residual * right_share)


def _waves(nodes: Tensor) -> Tensor:
    """Cosine coefficients of values on the nodes of a grid."""
    # Even extension: inner nodes appear twice, at t and -t.
    halves = nodes.clone()
    halves[..., 1:-1] /= 2
    waves: Tensor = torch.fft.rfft(torch.cat((halves, halves[..., 1:-1].flip(-1)), -1)).real
    return waves
