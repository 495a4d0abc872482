"""The fifteen image corruptions of Hendrycks and Dietterich, for small images."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from calibayes.checks import integer
from calibayes.data.corrupt.blur_corruptions import defocus_blur, glass_blur, motion_blur, zoom_blur
from calibayes.data.corrupt.digital_corruptions import contrast, elastic_transform, jpeg_compression, pixelate
from calibayes.data.corrupt.image_filters import Floats
from calibayes.data.corrupt.noise_corruptions import gaussian_noise, impulse_noise, shot_noise
from calibayes.data.corrupt.severity import check_severity, known_name
from calibayes.data.corrupt.weather_corruptions import brightness, fog, frost, snow
from calibayes.errors import DataError
from calibayes.randomness import derived_seed

__all__ = ["CORRUPTIONS", "corrupt_images"]

_SMALLEST = 8  # pixels of a side
_Corruption = Callable[[Floats, int, np.random.Generator], Floats]
_FUNCTIONS: Mapping[str, _Corruption] = MappingProxyType(
    {
        function.__name__: function
        for function in (
            *(gaussian_noise, shot_noise, impulse_noise),
            *(defocus_blur, glass_blur, motion_blur, zoom_blur),
            *(snow, frost, fog, brightness),
            *(contrast, elastic_transform, pixelate, jpeg_compression),
        )
    }
)

CORRUPTIONS: tuple[str, ...] = tuple(_FUNCTIONS)
"""The names of the image corruptions: noise, blurs, weather, and processing."""


def corrupt_images(images: Tensor, name: str, severity: int, *, seed: int) -> Tensor:
    """Corrupt images as cameras, weather and compression do, to see how a classifier does on worse data than it has learnt.

    The corruptions and their five strengths are those of Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to
    Common Corruptions and Perturbations" (2019, https://arxiv.org/abs/1903.12261), in the sizes for images of 32×32 pixels.
    The code is written from the descriptions, so single pixels differ from those of the published files. The ice of ``frost``
    is drawn, where they have photographs, and ``glass_blur`` moves pixels rather than swapping them. The strengths of these,
    of ``motion_blur`` and of ``elastic_transform`` are ours, such that each severity changes images more than the one before.

    What becomes of an image depends on the seed, the name, the severity and the image itself, not on the others or on its
    place among them. The random numbers are the same at every severity, so that severities can be compared.

    Args:
        images: ``[n, channels, height, width]`` with one or three channels: bytes, or numbers from 0 to 1.
        name: one of ``CORRUPTIONS``.
        severity: from 1, the mildest, to 5.
        seed: of the random numbers.

    Returns:
        Images of the same shape and type, on the same device.

    Examples:
        >>> images = torch.rand(4, 3, 32, 32)
        >>> foggy = corrupt_images(images, "fog", 3, seed=0)
        >>> foggy.shape, torch.equal(foggy[2:], corrupt_images(images[2:], "fog", 3, seed=0))
        (torch.Size([4, 3, 32, 32]), True)
        >>> corrupt_images(images, "frog", 3, seed=0)
        Traceback (most recent call last):
        calibayes.errors.InvalidArgumentError: Expected the name of an image corruption, but got 'frog'. Did you mean 'fog'?
    """
    corruption = _FUNCTIONS[known_name(name, CORRUPTIONS, "an image corruption")]
    check_severity(severity)
    integer("seed", seed)
    _check_images(images)
    scale = 1.0 if images.is_floating_point() else 255.0
    values = images.detach().cpu().to(torch.float64).numpy() / scale
    changed = np.empty_like(values)
    for image, place in zip(values, changed, strict=True):
        place[...] = corruption(image, severity, np.random.default_rng(_image_seed(image, name, seed)))
    result = torch.from_numpy(changed)
    result = result if images.is_floating_point() else (255 * result).round()
    return result.to(device=images.device, dtype=images.dtype)


def _image_seed(image: Floats, name: str, seed: int) -> int:
    """A seed for an image, the same for bytes and for numbers from 0 to 1."""
    content = hashlib.blake2b(np.rint(255 * image).astype(np.uint8).tobytes(), digest_size=16).hexdigest()
    return derived_seed(seed, "corrupt", name, content)


def _check_images(images: Tensor) -> None:
    expected = "Expected `images` to be a tensor [n, channels, height, width] with 1 or 3 channels"
    if not isinstance(images, Tensor):
        raise DataError(f"{expected}, but got {type(images).__name__}.")
    if images.dim() != 4 or images.shape[1] not in (1, 3) or min(images.shape[-2:]) < _SMALLEST:
        raise DataError(f"{expected} and at least {_SMALLEST} pixels a side, but got shape {list(images.shape)}.")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise DataError(f"Expected `images` of bytes (uint8) or numbers from 0 to 1, but got {images.dtype}.")
    if images.is_floating_point() and len(images):
        low, high = float(images.min()), float(images.max())
        if not (low >= 0 and high <= 1):
            raise DataError(
                f"Expected `images` to lie between 0 and 1, but they range from {low:.4g} to {high:.4g}. "
                "Corrupt images before they are normalised, and pass bytes as uint8."
            )
