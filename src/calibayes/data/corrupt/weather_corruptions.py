"""Corruptions of single images by weather and light."""

from __future__ import annotations

import numpy as np

from calibayes.data.corrupt.image_filters import (
    Floats,
    clipped,
    fractal,
    gaussian_blur,
    motion_blur,
    pixel_positions,
    zoom_matrix,
)

__all__ = ["brightness", "fog", "frost", "snow"]

# mean and standard deviation of the flakes, their zoom, the level below which there are none, radius and width of their fall,
# and the share of the image that keeps its colours
_SNOW = (
    (0.1, 0.2, 1.0, 0.6, 8, 3.0, 0.95),
    (0.1, 0.2, 1.0, 0.5, 10, 4.0, 0.9),
    (0.15, 0.3, 1.75, 0.55, 10, 4.0, 0.9),
    (0.25, 0.3, 2.25, 0.6, 12, 6.0, 0.85),
    (0.3, 0.3, 1.25, 0.65, 14, 12.0, 0.8),
)
_FROST = ((1.0, 0.2), (1.0, 0.3), (0.95, 0.4), (0.85, 0.55), (0.75, 0.7))  # weights of image and ice, our own as is the ice
_FOG = ((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75))  # density, smoothness
_BRIGHTNESS = (0.05, 0.1, 0.15, 0.2, 0.3)
_GREY = np.array([0.299, 0.587, 0.114])
_ICE = np.array([0.86, 0.94, 1.0])  # slightly blue
_CRYSTALS = 9  # in an image


def snow(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Add streaks of falling flakes to a paler image."""
    mean, std, zoom, level, radius, width, kept = _SNOW[severity - 1]
    height, columns = image.shape[-2:]
    flakes = mean + std * generator.standard_normal((height, columns))
    flakes = zoom_matrix(height, zoom) @ flakes @ zoom_matrix(columns, zoom).T
    flakes = clipped(np.where(flakes < level, 0.0, flakes))
    flakes = motion_blur(flakes, radius, width, angle=generator.uniform(45, 135))
    pale = np.maximum(image, _lightness(image) * 1.5 + 0.5)
    return clipped(kept * image + (1 - kept) * pale + flakes + flakes[::-1, ::-1])


def _lightness(image: Floats) -> Floats:
    return image if len(image) == 1 else np.tensordot(_GREY, image, 1)[None]


def frost(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Lay a sheet of ice crystals over the image.

    The published corruption takes photographs of frost, which are not part of this package; the ice here is drawn: crystals
    that meet at bright edges, each with needles in a direction of its own.
    """
    kept, weight = _FROST[severity - 1]
    height, width = image.shape[-2:]
    ice = _ice(height, width, generator)
    colour = _ICE if len(image) == 3 else _ICE.mean(keepdims=True)
    return clipped(kept * image + weight * colour[:, None, None] * ice)


def _ice(height: int, width: int, generator: np.random.Generator) -> Floats:
    """The brightness of a sheet of ice: many dark gaps, and bright edges and needles."""
    rows, columns = pixel_positions(height, width)
    centres = generator.uniform(0, 1, (_CRYSTALS, 2)) * [height, width]
    down, right = rows - centres[:, 0, None, None], columns - centres[:, 1, None, None]
    far = np.hypot(down, right)
    nearest = far.argmin(0)
    two = np.sort(far, axis=0)[:2]
    edges = np.exp(-((two[1] - two[0]) ** 2) / 2.0)
    angles = generator.uniform(0, np.pi, _CRYSTALS)[:, None, None]
    waves = np.sin((down * np.sin(angles) + right * np.cos(angles)) * 2.0)
    needles = np.take_along_axis(waves, nearest[None], 0)[0] > 0.2
    covered = fractal(height, width, 1.7, generator)
    return gaussian_blur(clipped(0.7 * edges + 0.55 * needles * covered + 0.55 * covered), 0.45)


def fog(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Add a cloud, and lower the contrast so that the brightest pixel stays as it is."""
    density, smoothness = _FOG[severity - 1]
    brightest = max(float(image.max()), 1e-6)
    height, width = image.shape[-2:]
    cloud = fractal(height, width, smoothness, generator)
    return clipped((image + density * cloud) * brightest / (brightest + density))


def brightness(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Raise the brightest colour of each pixel (the value of HSV), and keep hue and saturation."""
    value = image.max(0)
    raised = clipped(value + _BRIGHTNESS[severity - 1])
    return np.where(value > 0, image * (raised / np.where(value > 0, value, 1.0)), raised)
