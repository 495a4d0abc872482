"""Blurs, interpolation and random textures for single images ``[..., height, width]`` of numbers from 0 to 1."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Floats",
    "at_positions",
    "clipped",
    "convolved",
    "fractal",
    "gaussian_blur",
    "motion_blur",
    "pixel_positions",
    "zoom_matrix",
]

Floats = NDArray[np.float64]
_WIDTHS = 4.0  # standard deviations after which a Gaussian is cut off


def clipped(image: Floats) -> Floats:
    """The image with all values within 0 and 1."""
    return np.clip(image, 0.0, 1.0)


def pixel_positions(height: int, width: int) -> tuple[Floats, Floats]:
    """The row and the column of every pixel, each ``[height, width]``."""
    rows, columns = np.mgrid[:height, :width].astype(np.float64)
    return rows, columns


def gaussian_blur(image: Floats, sigma: float) -> Floats:
    """Blur by a Gaussian of this standard deviation in pixels; the image is mirrored at its edges.

    Examples:
        >>> spot = np.zeros((5, 5))
        >>> spot[2, 2] = 1.0
        >>> blurred = gaussian_blur(spot, 0.5)
        >>> round(float(blurred.sum()), 6), bool(blurred.argmax() == 12)
        (1.0, True)
    """
    radius = math.ceil(_WIDTHS * sigma)
    if radius == 0:
        return image
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    weights /= weights.sum()
    return convolved(convolved(image, weights[:, None]), weights[None, :])


def convolved(image: Floats, kernel: Floats) -> Floats:
    """Weighted sums of the pixels around each pixel; the kernel has odd sides, the image is mirrored at its edges."""
    (height, width), (down, right) = image.shape[-2:], (side // 2 for side in kernel.shape)
    borders = [(0, 0)] * (image.ndim - 2) + [(down, down), (right, right)]
    padded = np.pad(image, borders, mode="symmetric")
    total = np.zeros_like(image)
    for (row, column), weight in np.ndenumerate(kernel):
        if weight != 0:
            total += weight * padded[..., row : row + height, column : column + width]
    return total


def at_positions(image: Floats, rows: Floats, columns: Floats) -> Floats:
    """Values between pixels by bilinear interpolation, with the image mirrored at its edges.

    Examples:
        >>> at_positions(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([[0.5]]), np.array([[0.25]]))
        array([[0.25]])
    """
    height, width = image.shape[-2:]
    top, left = np.floor(rows), np.floor(columns)
    down, right = rows - top, columns - left
    y0, y1 = (_mirrored(top + step, height) for step in (0, 1))
    x0, x1 = (_mirrored(left + step, width) for step in (0, 1))
    upper = image[..., y0, x0] * (1 - right) + image[..., y0, x1] * right
    lower = image[..., y1, x0] * (1 - right) + image[..., y1, x1] * right
    return np.asarray(upper * (1 - down) + lower * down)


def _mirrored(places: Floats, length: int) -> NDArray[np.int64]:
    """Places on an axis that is continued by its mirror image, without repeating the last pixel."""
    period = max(2 * (length - 1), 1)
    folded = places.astype(np.int64) % period
    return np.minimum(folded, period - folded)


def motion_blur(image: Floats, radius: int, sigma: float, angle: float) -> Floats:
    """Blur towards one side along a direction: half a Gaussian of 2 · radius + 1 pixels; the angle is in degrees."""
    rows, columns = pixel_positions(*image.shape[-2:])
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-0.5 * (steps / sigma) ** 2)
    weights /= weights.sum()
    down, right = math.sin(math.radians(angle)), math.cos(math.radians(angle))
    total = np.zeros_like(image)
    for step, weight in zip(steps, weights, strict=True):
        if weight > 1e-4:
            total += weight * at_positions(image, rows - step * down, columns - step * right)
    return np.asarray(total / weights[weights > 1e-4].sum())


def zoom_matrix(side: int, factor: float) -> Floats:
    """The matrix that stretches an axis about its middle by bilinear interpolation and keeps its length."""
    middle = (side - 1) / 2
    places = np.clip(middle + (np.arange(side) - middle) / factor, 0, side - 1)
    left = np.minimum(np.floor(places).astype(np.int64), side - 2)
    matrix = np.zeros((side, side))
    matrix[np.arange(side), left] = 1 - (places - left)
    matrix[np.arange(side), left + 1] = places - left
    return matrix


def fractal(height: int, width: int, decay: float, generator: np.random.Generator) -> Floats:
    """A cloudy texture from 0 to 1 by the diamond-square algorithm; with a larger ``decay`` it is smoother.

    Examples:
        >>> texture = fractal(28, 32, 2.0, np.random.default_rng(0))
        >>> texture.shape, float(texture.min()), float(texture.max())
        ((28, 32), 0.0, 1.0)
    """
    side = 1 << math.ceil(math.log2(max(height, width)))
    grid = np.zeros((side, side))  # its edges are joined
    step, roughness = side, 1.0
    while step >= 2:
        half = step // 2
        corners = grid[::step, ::step]
        across = corners + np.roll(corners, -1, 0)
        centres = (across + np.roll(across, -1, 1)) / 4
        grid[half::step, half::step] = centres + roughness * generator.uniform(-1, 1, centres.shape)
        centres = grid[half::step, half::step]
        beside = (np.roll(centres, 1, 0) + centres + corners + np.roll(corners, -1, 1)) / 4
        below = (np.roll(centres, 1, 1) + centres + corners + np.roll(corners, -1, 0)) / 4
        grid[::step, half::step] = beside + roughness * generator.uniform(-1, 1, beside.shape)
        grid[half::step, ::step] = below + roughness * generator.uniform(-1, 1, below.shape)
        step, roughness = half, roughness / decay
    texture = grid[:height, :width] - grid[:height, :width].min()
    return np.asarray(texture / texture.max())
