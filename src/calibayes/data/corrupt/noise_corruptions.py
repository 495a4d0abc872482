"""Corruptions of single images by noise."""

from __future__ import annotations

import numpy as np

from calibayes.data.corrupt.image_filters import Floats, clipped

__all__ = ["gaussian_noise", "impulse_noise", "shot_noise"]

_STDS = (0.04, 0.06, 0.08, 0.09, 0.10)
_PHOTONS = (500, 250, 100, 75, 50)
_SHARES = (0.01, 0.02, 0.03, 0.05, 0.07)


def gaussian_noise(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Add normal noise, as in low light."""
    return clipped(image + _STDS[severity - 1] * generator.standard_normal(image.shape))


def shot_noise(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Count photons: Poisson noise, fewer of them at a higher severity."""
    photons = _PHOTONS[severity - 1]
    return clipped(generator.poisson(image * photons) / photons)


def impulse_noise(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Set single values to black or white: salt and pepper."""
    hit, white = generator.random(image.shape) < _SHARES[severity - 1], generator.random(image.shape) < 0.5
    return np.where(hit, white.astype(np.float64), image)
