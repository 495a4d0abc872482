"""Corruptions of single images by processing: contrast, warping, coarse pixels and compression."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from calibayes.data.corrupt.image_filters import Floats, at_positions, clipped, gaussian_blur, pixel_positions

__all__ = ["contrast", "elastic_transform", "jpeg_compression", "pixelate"]

_CONTRASTS = (0.75, 0.5, 0.4, 0.3, 0.15)
# As shares of the image's side: size and smoothness of the local shifts, and shift of the corners of a triangle. Our own: the
# published ones go from a strong affine map to a weak one, so that the mildest moves pixels furthest.
_ELASTIC = ((0.04, 0.06, 0.02), (0.06, 0.06, 0.03), (0.08, 0.06, 0.04), (0.1, 0.05, 0.05), (0.1, 0.04, 0.06))
_SIDES = (0.95, 0.9, 0.85, 0.75, 0.65)
_QUALITIES = (80, 65, 58, 50, 40)


def contrast(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Draw each colour towards its mean over the image."""
    mean = image.mean(axis=(-2, -1), keepdims=True)
    return clipped(mean + _CONTRASTS[severity - 1] * (image - mean))


def elastic_transform(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Stretch, shear and rotate the image slightly, then shift its parts against each other."""
    height, width = image.shape[-2:]
    size, smoothness, shift = (share * min(height, width) for share in _ELASTIC[severity - 1])
    rows, columns = _sheared(height, width, shift * generator.uniform(-1, 1, (3, 2)))
    field = generator.uniform(-1, 1, (2, *rows.shape))
    down, right = size * gaussian_blur(field, smoothness)
    return at_positions(image, rows + down, columns + right)


def _sheared(height: int, width: int, moves: Floats) -> tuple[Floats, Floats]:
    """Where pixels come from under the affine map that moves the corners of a triangle around the middle."""
    centre, reach = np.array([height, width]) / 2, min(height, width) // 3
    corners = centre + reach * np.array([[1, 1], [1, -1], [-1, -1]])
    ones = np.ones((3, 1))
    back = np.linalg.solve(np.hstack([corners + moves, ones]), corners)
    rows, columns = pixel_positions(height, width)
    came = np.stack([rows, columns, np.ones_like(rows)], -1) @ back
    return came[..., 0], came[..., 1]


def pixelate(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Shrink the image by averages over boxes, and enlarge it again by repeating pixels."""
    from PIL.Image import Resampling

    height, width = image.shape[-2:]
    share = _SIDES[severity - 1]
    picture = _picture(image)
    small = picture.resize((int(width * share), int(height * share)), Resampling.BOX)
    return _pixels(small.resize((width, height), Resampling.NEAREST))


def jpeg_compression(image: Floats, severity: int, generator: np.random.Generator) -> Floats:
    """Compress the image, and unpack it again."""
    from PIL import Image

    with io.BytesIO() as file:
        _picture(image).save(file, "JPEG", quality=_QUALITIES[severity - 1])
        with Image.open(file) as unpacked:
            return _pixels(unpacked)


def _picture(image: Floats) -> Any:
    from PIL import Image

    pixels = np.rint(255 * image).astype(np.uint8)
    return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))


def _pixels(picture: Any) -> Floats:
    pixels = np.asarray(picture, dtype=np.float64) / 255
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
