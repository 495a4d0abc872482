r"""The smooth calibration error of Błasiok and Nakkiran (2023), in O(n) by a Fourier transform."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from calibayes.metrics.bootstrap_worlds import direction, mixed
from calibayes.metrics.confidence_cells import Cells, sorted_cells
from calibayes.metrics.prediction_arrays import Array, as_predictions
from calibayes.threads import in_one_thread

__all__ = ["SmoothWorlds", "Spectrum", "smooth_ece"]

_FINEST = 1 << 12
_HALVINGS = 40


def smooth_ece(probs: Array, targets: Array, *, weights: Array | None = None, check: bool = True) -> float:
    r"""The calibration error without bins: residuals are smoothed by a kernel whose width is the error itself.

    With the Gaussian kernel $K_\sigma$ on $[0, 1]$, reflected at both ends,
    $$\mathrm{smECE}_\sigma = \int_0^1 \Big| \frac1n \sum_i (c_i - r_i) K_\sigma(r_i, t) \Big| \, dt,$$
    and the smooth calibration error is the width $\sigma$ for which $\mathrm{smECE}_\sigma = \sigma$. Unlike the ECE it
    changes little when the predictions do, and there is no number of bins to choose. See Błasiok and Nakkiran, "Smooth ECE:
    Principled Reliability Diagrams via Kernel Smoothing" (2023, https://arxiv.org/abs/2309.12236).

    Args:
        probs: class probabilities, shape ``[n, K]`` or one column for two classes, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        weights: how much each example counts.
        check: look at the values first; ``False`` when they are known to be good.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1]]).expand(100, 2)
        >>> round(smooth_ece(probs, torch.tensor([0] * 70 + [1] * 30)), 4)  # says 0.9, is right 0.7
        0.2
    """
    cells = sorted_cells(as_predictions(probs, targets, weights, check=check))[0]
    return float(Spectrum(cells).fixed_point())


class Spectrum:
    """Residuals over confidence as cosine waves: a reflected Gaussian multiplies each wave by a number.

    Args:
        cells: where the residuals are; leading axes are kept.
        grid: the number of steps of confidence, a power of two; residuals between two nodes are shared out to both.

    Attributes:
        waves: the coefficients, shape ``[..., grid + 1]``; linear in the residuals.
    """

    def __init__(self, cells: Cells, grid: int = _FINEST) -> None:
        self.grid = grid
        self.waves = _waves(_nodes(cells.r, cells.residual, grid))

    def error(self, sigma: Tensor, waves: Tensor | None = None) -> Tensor:
        r"""$\mathrm{smECE}_\sigma$; ``sigma`` of the shape of the leading axes, or a single one for all."""
        waves = self.waves if waves is None else waves
        frequency = math.pi * torch.arange(self.grid + 1, dtype=torch.float64)
        # Sharing out between two nodes has smoothed already, by a variance of a sixth of a squared step.
        variance = (sigma.square() - 1 / (6 * self.grid**2)).clamp_min(0)
        damped = waves * torch.exp(-0.5 * variance.unsqueeze(-1) * frequency.square())
        # The even extension to [-1, 1] has a real spectrum; its inverse transform is the smoothed residual per unit of r.
        values: Tensor = torch.fft.irfft(damped.to(torch.complex128), n=2 * self.grid)[..., : self.grid + 1].abs()
        return 2 * values.sum(-1) - values[..., 0] - values[..., -1]

    @in_one_thread
    def fixed_point(self, waves: Tensor | None = None) -> Tensor:
        r"""The $\sigma$ at which the error is $\sigma$; the error falls as $\sigma$ grows, so halving finds it."""
        waves = self.waves if waves is None else waves
        low = torch.zeros(waves.shape[:-1], dtype=torch.float64)
        high = torch.ones_like(low)
        steps = _HALVINGS if waves.dim() == 1 else 16  # a replicate needs no more digits than chance leaves it
        for _ in range(steps):
            middle = (low + high) / 2
            above = self.error(middle, waves) > middle
            low, high = torch.where(above, middle, low), torch.where(above, high, middle)
        return (low + high) / 2


class SmoothWorlds:
    r"""Worlds of a bootstrap (see `calibayes.metrics.intervals`) for the smooth calibration error.

    As $\mathrm{smECE}_\sigma$ falls with $\sigma$, the fixed point lies at or below $\hat\sigma$ exactly where
    $\mathrm{smECE}_{\hat\sigma} \le \hat\sigma$: one smoothing tells on which side of the observed error a replicate is.

    Args:
        cells: the cells of the sample.
        replicates: those of its replicates.
        null: residuals that chance makes of a calibrated classifier in each cell, shape ``[B, C]``.
    """

    def __init__(self, cells: Cells, replicates: Cells, null: Tensor) -> None:
        self.observed = float(Spectrum(cells).fixed_point())
        grid = min(_FINEST, max(256, 1 << math.ceil(math.log2(4 / max(self.observed, 4e-3)))))
        self._spectrum = Spectrum(cells, grid)
        gaps = _nodes(cells.r, cells.residual, grid)
        hidden = _nodes(cells.r, null, grid)
        self._noise = _waves(_nodes(replicates.r, replicates.residual, grid) - gaps)
        self._null, self._along = _waves(hidden), _waves(direction(gaps, hidden))

    def below(self, s: float, error: float) -> float:
        """In which share of replicates of world $s$ the error is at most ``error``."""
        sigma = torch.tensor(error, dtype=torch.float64)
        errors = self._spectrum.error(sigma, mixed(self._null, self._noise, s) + s * self._along)
        return float((errors <= error * (1 + 1e-9)).double().mean())

    def truth(self, s: float) -> float:
        """The true error of world $s$."""
        return float(self._spectrum.fixed_point(s * self._along)) if s > 0 else 0.0

    def errors(self, s: float, *, resampled: bool = False) -> Tensor:
        """The error of every replicate of world $s$."""
        noise = self._noise if resampled else mixed(self._null, self._noise, s)
        return self._spectrum.fixed_point(noise + s * self._along)


def _nodes(r: Tensor, residual: Tensor, grid: int) -> Tensor:
    """The residuals on the nodes of a grid, shape ``[..., grid + 1]``: what lies between two nodes is shared out to both."""
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
