"""Corruptions of single images by blurs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from calibayes.data.corrupt.image_filters import Floats, at_positions, convolved, gaussian_blur, pixel_positions, zoom_matrix
from calibayes.data.corrupt.image_filters import motion_blur as blurred_along

__all__ = ["defocus_blur", "glass_blur", "motion_blur", "zoom_blur"]

_DISKS = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1))  # radius, softness of its edge
# The published strengths of the next two are not in the order of how far they change an image (a blur after the swaps brings
# pixels back; a longer reach of the same width adds nothing), so these are our own.
_GLASS = (0.5, 0.75, 1.0, 1.5, 2.0)  # the furthest that a pixel is moved
_GLASS_BLUR = 0.4  # pixels
_MOTIONS = ((6, 1.0), (6, 1.5), (6, 2.0), (8, 2.25), (9, 2.5))  # radius, width
_ZOOMS = (1.06, 1.11, 1.16, 1.21, 1.26)  # the last one, from 1 in steps of 0.01


def defocus_blur(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Blur by a disk with a soft edge, as a lens out of focus does."""
    return convolved(image, _disk(*_DISKS[severity - 1]))


@lru_cache
def _disk(radius: float, softness: float) -> Floats:
    reach = int(radius) + 1
    rows, columns = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    inside = (rows**2 + columns**2 <= radius**2).astype(np.float64)
    edge = np.exp(-0.5 * (np.array([-1.0, 0.0, 1.0]) / softness) ** 2)
    edge /= edge.sum()
    padded = np.pad(inside / inside.sum(), 1)
    soft = sum(weight * np.roll(padded, step, 0) for step, weight in zip((-1, 0, 1), edge, strict=True))
    return np.asarray(sum(weight * np.roll(soft, step, 1) for step, weight in zip((-1, 0, 1), edge, strict=True)))


def glass_blur(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Take each pixel from a random place nearby, between two slight blurs, as frosted glass does."""
    height, width = image.shape[-2:]
    rows, columns = pixel_positions(height, width)
    down, right = _GLASS[severity - 1] * generator.uniform(-1, 1, (2, height, width))
    return gaussian_blur(at_positions(gaussian_blur(image, _GLASS_BLUR), rows + down, columns + right), _GLASS_BLUR)


def motion_blur(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Blur along a direction up to 45 degrees from the horizontal, as a moving camera does."""
    return blurred_along(image, *_MOTIONS[severity - 1], angle=generator.uniform(-45, 45))


def zoom_blur(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Average over zooms, as a camera does that moves towards its object."""
    height, width = image.shape[-2:]
    factors = np.arange(1.0, _ZOOMS[severity - 1] - 0.005, 0.01)
    zoomed = sum(zoom_matrix(height, each) @ image @ zoom_matrix(width, each).T for each in factors)
    return np.asarray((image + zoomed) / (len(factors) + 1))
