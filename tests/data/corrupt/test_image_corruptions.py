"""Image corruptions: closed forms, severities, independence of the batch, and errors."""

from __future__ import annotations

import colorsys
import io
from functools import lru_cache

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from calibayes.data import fashion_mnist
from calibayes.data.corrupt import CORRUPTIONS, SEVERITIES, corrupt_images, digital_corruptions
from calibayes.errors import DataError, InvalidArgumentError


@lru_cache(maxsize=1)
def _clothes() -> Tensor:
    images = fashion_mnist().test[0][:12]
    return (images - images.min()) / (images.max() - images.min())


def clothes(count: int = 12) -> Tensor:
    """Grey images from 0 to 1."""
    return _clothes()[:count]


def colourful(count: int = 12) -> Tensor:
    """The same in a coloured light, as images of 32×32."""
    light = torch.tensor([0.9, 0.6, 0.3]).view(3, 1, 1)
    return torch.nn.functional.pad(clothes(count) * light, (2, 2, 2, 2))


def distance(first: Tensor, second: Tensor) -> float:
    return float((first.double() - second.double()).square().mean().sqrt())


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_higher_severity_changes_images_more(name: str) -> None:
    for images in (clothes(), colourful()):
        distances = [distance(images, corrupt_images(images, name, severity, seed=0)) for severity in SEVERITIES]
        assert distances[0] > 0
        assert all(np.diff(distances) > 0), distances


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_an_image_does_not_depend_on_the_batch(name: str) -> None:
    images = colourful(5)
    whole = corrupt_images(images, name, 3, seed=1)
    assert torch.equal(corrupt_images(images[3:4], name, 3, seed=1), whole[3:4])
    assert torch.equal(corrupt_images(images.flip(0), name, 3, seed=1), whole.flip(0))
    assert torch.equal(corrupt_images(images, name, 3, seed=1), whole)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_shape_type_and_range_stay(name: str) -> None:
    grey = clothes(2)
    for images in (grey, grey.double(), colourful(2)):
        changed = corrupt_images(images, name, 5, seed=0)
        assert changed.shape == images.shape
        assert changed.dtype == images.dtype
        assert 0 <= changed.min() <= changed.max() <= 1
    assert corrupt_images(grey[:0], name, 1, seed=0).shape == (0, 1, 28, 28)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_bytes_are_corrupted_as_numbers_are(name: str) -> None:
    stored = (255 * colourful(3)).round().to(torch.uint8)
    changed = corrupt_images(stored, name, 4, seed=0)
    numbers = corrupt_images(stored.double() / 255, name, 4, seed=0)
    assert changed.dtype == torch.uint8
    assert (changed - 255 * numbers).abs().max() <= 0.5 + 1e-9


@pytest.mark.parametrize(
    "name",
    ["gaussian_noise", "shot_noise", "impulse_noise", "glass_blur", "motion_blur", "snow", "frost", "fog", "elastic_transform"],
)
def test_random_corruptions_depend_on_the_seed_and_on_the_image(name: str) -> None:
    images = clothes(2)
    first, second = (corrupt_images(images, name, 3, seed=seed) for seed in (0, 1))
    assert not torch.equal(first, second)
    # Two images that differ in a corner pixel have other random numbers.
    touched = images.clone()
    touched[:, :, 0, 0] = 1.0
    assert distance(corrupt_images(touched, name, 3, seed=0)[..., 14:, 14:], first[..., 14:, 14:]) > 0


def test_gaussian_noise_has_its_standard_deviation_and_no_mean() -> None:
    grey = torch.rand(200, 1, 28, 28, generator=torch.Generator().manual_seed(0)).mul(0.02).add(0.49)
    for severity, std in zip(SEVERITIES, (0.04, 0.06, 0.08, 0.09, 0.10), strict=True):
        noise = corrupt_images(grey, "gaussian_noise", severity, seed=0) - grey
        assert float(noise.std()) == pytest.approx(std, rel=0.01)
        assert float(noise.mean()) == pytest.approx(0.0, abs=5 * std / noise.numel() ** 0.5)


def test_shot_noise_has_the_variance_of_counts() -> None:
    grey = torch.rand(200, 1, 28, 28, generator=torch.Generator().manual_seed(0)).mul(0.02).add(0.49)
    for severity, photons in zip(SEVERITIES, (500, 250, 100, 75, 50), strict=True):
        noise = corrupt_images(grey, "shot_noise", severity, seed=0) - grey
        assert float(noise.var()) == pytest.approx(0.5 / photons, rel=0.03)


def test_impulse_noise_hits_a_share_of_the_values_and_leaves_the_others() -> None:
    grey = torch.rand(200, 1, 28, 28, generator=torch.Generator().manual_seed(0)).mul(0.02).add(0.49)
    for severity, share in zip(SEVERITIES, (0.01, 0.02, 0.03, 0.05, 0.07), strict=True):
        changed = corrupt_images(grey, "impulse_noise", severity, seed=0)
        hit = changed != grey
        assert float(hit.float().mean()) == pytest.approx(share, rel=0.05)
        assert set(changed[hit].unique().tolist()) == {0.0, 1.0}
        assert float(changed[hit].mean()) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(("severity", "factor"), list(zip(SEVERITIES, (0.75, 0.5, 0.4, 0.3, 0.15), strict=True)))
def test_contrast_is_a_line_through_the_mean(severity: int, factor: float) -> None:
    images = colourful()
    mean = images.double().mean((-2, -1), keepdim=True)
    expected = (factor * images + (1 - factor) * mean).clamp(0, 1)
    torch.testing.assert_close(corrupt_images(images, "contrast", severity, seed=0).double(), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("severity", "added"), list(zip(SEVERITIES, (0.05, 0.1, 0.15, 0.2, 0.3), strict=True)))
def test_brightness_raises_the_value_and_keeps_hue_and_saturation(severity: int, added: float) -> None:
    image = colourful(1)
    changed = corrupt_images(image, "brightness", severity, seed=0)
    for row, column in ((1, 1), (16, 16), (10, 20), (25, 12)):
        before, after = (colorsys.rgb_to_hsv(*each[0, :, row, column].tolist()) for each in (image, changed))
        assert after[2] == pytest.approx(min(before[2] + added, 1.0), abs=1e-6)
        if before[2] > 0:
            assert after[:2] == pytest.approx(before[:2], abs=1e-5)


@pytest.mark.parametrize(("severity", "side"), list(zip(SEVERITIES, (30, 28, 27, 24, 20), strict=True)))
def test_pixelate_repeats_the_means_of_boxes(severity: int, side: int) -> None:
    images = (255 * colourful(2)).round().to(torch.uint8)
    changed = corrupt_images(images, "pixelate", severity, seed=0)
    # Nearest enlargement: each pixel is the small image's at its centre; so there are `side` different rows and columns.
    places = ((np.arange(32) + 0.5) * side / 32).astype(int)
    for image, pixels in zip(images.numpy(), changed.numpy(), strict=True):
        small = np.stack([np.asarray(Image.fromarray(each).resize((side, side), Image.Resampling.BOX)) for each in image])
        np.testing.assert_array_equal(pixels, small[:, places][:, :, places])


def test_boxes_of_whole_pixels_are_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """At half the size, by another average; the strengths themselves are never whole fractions."""
    monkeypatch.setattr(digital_corruptions, "_SIDES", (0.5,))
    image = np.random.default_rng(0).random((1, 32, 32))
    halved = digital_corruptions.pixelate(image, 1, np.random.default_rng(0))
    means = image.reshape(1, 16, 2, 16, 2).mean((2, 4))
    np.testing.assert_allclose(halved, means.repeat(2, 1).repeat(2, 2), atol=2 / 255)


def test_defocus_at_the_highest_severity_is_a_mean_of_nine_pixels() -> None:
    images = colourful(2)
    padded = torch.nn.functional.pad(images, (1, 1, 1, 1), mode="replicate")
    expected = torch.nn.functional.avg_pool2d(padded, 3, stride=1)
    torch.testing.assert_close(corrupt_images(images, "defocus_blur", 5, seed=0), expected, atol=1e-6, rtol=0)


def test_compression_is_that_of_pillow() -> None:
    pixels = (255 * colourful(1)[0]).round().to(torch.uint8)
    with io.BytesIO() as file:
        Image.fromarray(pixels.permute(1, 2, 0).numpy()).save(file, "JPEG", quality=50)
        expected = torch.from_numpy(np.asarray(Image.open(file)).copy()).permute(2, 0, 1)
    assert torch.equal(corrupt_images(pixels[None], "jpeg_compression", 4, seed=0)[0], expected)


@pytest.mark.parametrize("name", ["defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "elastic_transform", "contrast"])
def test_what_moves_or_mixes_pixels_leaves_an_even_image_alone(name: str) -> None:
    even = torch.full((1, 3, 32, 32), 0.375)
    torch.testing.assert_close(corrupt_images(even, name, 5, seed=0), even)


def test_fog_keeps_the_brightest_value_in_reach() -> None:
    images = clothes(4)
    for severity in SEVERITIES:
        assert corrupt_images(images, "fog", severity, seed=0).max() <= images.max()


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((1, 1, 28, 28)), "but got ndarray"),
        (torch.zeros(28, 28), r"but got shape \[28, 28\]"),
        (torch.zeros(1, 2, 28, 28), r"but got shape \[1, 2, 28, 28\]"),
        (torch.zeros(1, 3, 4, 28), r"at least 8 pixels a side, but got shape \[1, 3, 4, 28\]"),
        (torch.zeros(1, 1, 28, 28, dtype=torch.int64), r"but got torch\.int64"),
        (torch.full((1, 1, 28, 28), 1.5), "from 1.5 to 1.5"),
        (torch.full((1, 1, 28, 28), -0.25), "from -0.25 to -0.25"),
        (torch.full((1, 1, 28, 28), torch.nan), "from nan to nan"),
    ],
)
def test_images_that_are_none_are_named(images: Tensor, message: str) -> None:
    with pytest.raises(DataError, match=message):
        corrupt_images(images, "fog", 1, seed=0)


def test_wrong_names_and_severities_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"but got 'jpeg'. They are|but got 'jpeg'. Did you mean"):
        corrupt_images(clothes(1), "jpeg", 1, seed=0)
    with pytest.raises(InvalidArgumentError, match="Did you mean 'motion_blur'"):
        corrupt_images(clothes(1), "motion_blurr", 1, seed=0)
    for severity in (0, 6, -1):
        with pytest.raises(InvalidArgumentError, match=f"one of 1, 2, 3, 4, 5, but got {severity}"):
            corrupt_images(clothes(1), "fog", severity, seed=0)
    with pytest.raises(InvalidArgumentError, match=r"to be an integer, but got 2.5"):
        corrupt_images(clothes(1), "fog", 2.5, seed=0)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="`seed`"):
        corrupt_images(clothes(1), "fog", 2, seed="0")  # type: ignore[arg-type]
