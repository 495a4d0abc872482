"""CIFAR-10: the real images where they are, and files that are not what they should be."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.data.real import needs, place
from torch import Tensor, nn

from calibayes.data import Splits, cifar10
from calibayes.errors import DataError, InvalidArgumentError, MissingDataError
from calibayes.networks import CIFAR10, IMAGENET, Normalize, load_weights, resnet20

MD5 = {  # of the official files, as other programs check them
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}


def keys(images: Tensor) -> list[bytes]:
    return [image.tobytes() for image in images.numpy()]


@pytest.fixture(scope="module")
def splits() -> Splits:
    return cifar10()


@needs("cifar10")
@pytest.mark.parametrize("name", MD5)
def test_the_files_are_the_published_ones(name: str) -> None:
    assert hashlib.md5((place("cifar10") / name).read_bytes()).hexdigest() == MD5[name]


@needs("cifar10")
def test_the_parts_are_the_whole_with_its_labels(splits: Splits) -> None:
    sizes = {"train": 45_000, "validation": 5_000, "test": 10_000}
    for part, count in sizes.items():
        x, y = getattr(splits, part)
        assert x.shape == (count, 3, 32, 32)
        assert (x.dtype, y.dtype) == (torch.uint8, torch.int64)
    records = np.concatenate(
        [np.fromfile(place("cifar10") / f"data_batch_{number}.bin", np.uint8).reshape(-1, 3073) for number in range(1, 6)]
    )
    expected = sorted((record[1:].tobytes(), int(record[0])) for record in records)
    x, y = (torch.cat([a, b]) for a, b in zip(splits.train, splits.validation, strict=True))
    assert sorted(zip(keys(x), y.tolist(), strict=True)) == expected
    tested = np.fromfile(place("cifar10") / "test_batch.bin", np.uint8).reshape(-1, 3073)
    assert np.array_equal(splits.test[0].flatten(1).numpy(), tested[:, 1:])
    assert splits.test[1].tolist() == tested[:, 0].tolist()
    assert torch.bincount(splits.test[1]).tolist() == [1000] * 10
    assert list(splits.classes) == (place("cifar10") / "batches.meta.txt").read_text().split()


@needs("cifar10")
def test_smaller_parts_are_parts_of_the_larger_and_validation_stays(splits: Splits) -> None:
    small = cifar10(train=2000, test=500)
    assert torch.equal(small.train[0], splits.train[0][:2000])
    assert torch.equal(small.validation[0], splits.validation[0])
    assert len(small.test[1]) == 500
    assert set(keys(small.test[0])) <= set(keys(splits.test[0]))
    other = cifar10(train=2000, validation=100, test=500, seed=1)
    for part in ("train", "validation", "test"):
        assert not torch.equal(getattr(other, part)[1][:100], getattr(small, part)[1][:100])
    assert [len(y) for _, y in (cifar10(validation=0).train, cifar10(validation=0).validation)] == [50_000, 0]


@needs("cifar10")
def test_the_moments_are_those_of_the_training_images() -> None:
    images = cifar10(validation=0).train[0].transpose(0, 1).flatten(1)
    for channel, mean, std in zip(images, *CIFAR10, strict=True):
        counts = torch.bincount(channel.int(), minlength=256).double() / len(channel)
        levels = torch.arange(256.0, dtype=torch.float64) / 255
        found = (counts * levels).sum()
        assert found == pytest.approx(mean, abs=5e-5)
        assert ((counts * levels**2).sum() - found**2).sqrt() == pytest.approx(std, abs=5e-5)


@needs("cifar10", "resnet20")
def test_the_published_network_knows_them(splits: Splits) -> None:
    net = resnet20()
    load_weights(net, place("resnet20"))
    whole = nn.Sequential(Normalize(*IMAGENET), net).eval()
    with torch.no_grad():
        right = whole(splits.test[0][:500]).argmax(1) == splits.test[1][:500]
    assert right.double().mean() > 0.88  # 91.7 % of all, minus three standard deviations


def files(folder: Path, size: int = 30_730_000) -> Path:
    """Files of the right size and names, with black aeroplanes that take no room on the disk."""
    root = folder / "cifar-10-batches-bin"
    root.mkdir()
    for name in MD5:
        with (root / name).open("wb") as file:
            file.truncate(size)
    return root


def test_files_of_another_size_are_refused(tmp_path: Path) -> None:
    files(tmp_path, size=30_730_001)
    with pytest.raises(DataError, match=r"data_batch_1\.bin' to have 30,730,000 bytes, but it has 30,730,001"):
        cifar10(folder=tmp_path)


def test_a_file_that_is_lost_is_named(tmp_path: Path) -> None:
    (files(tmp_path) / "data_batch_4.bin").unlink()
    with pytest.raises(MissingDataError, match=r"no '.*data_batch_4\.bin'"):
        cifar10(folder=tmp_path)


def test_a_label_that_cannot_be_is_named(tmp_path: Path) -> None:
    with (files(tmp_path) / "test_batch.bin").open("r+b") as file:
        file.seek(3073 * 17)
        file.write(b"\x0b")
    with pytest.raises(DataError, match=r"must lie in 0 … 9, but one is 11"):
        cifar10(folder=tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train": 45_001}, "no more than the 50,000 training images, but got 45001 and 5000"),
        ({"validation": 50_000}, "`train` to be a positive integer, but got 0"),
        ({"validation": -1}, "`validation` to be an integer of at least 0, but got -1"),
        ({"test": 10_001}, "`test` to be at most 10,000, the number of test images, but got 10001"),
        ({"test": 0}, "`test` to be a positive integer, but got 0"),
    ],
)
def test_bad_sizes_are_quoted(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        cifar10(**settings)
