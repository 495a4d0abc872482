"""The embedded Fashion-MNIST images, and the format they are stored in."""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from calibayes.data import Splits, fashion_images, fashion_mnist
from calibayes.data.fashion_images import read_idx
from calibayes.errors import DataError, InvalidArgumentError

FOLDER = Path(fashion_images.__file__).with_name("fashion_mnist")
SHA256 = {
    "t10k-images-idx3-ubyte.gz": "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
    "t10k-labels-idx1-ubyte.gz": "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05",
}


@pytest.fixture(scope="module")
def splits() -> Splits:
    return fashion_mnist()


def pixels(x: Tensor) -> list[bytes]:
    """The original bytes of standardised images: standardising is increasing, and 0 and 255 occur in every part."""
    scaled = (x - x.min()) / (x.max() - x.min()) * 255
    return [image.numpy().tobytes() for image in scaled.round().to(torch.uint8)]


@pytest.mark.parametrize("name", SHA256)
def test_the_files_are_the_published_ones(name: str) -> None:
    assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == SHA256[name]


def test_the_license_travels_with_the_files() -> None:
    text = (FOLDER / "LICENSE").read_text()
    assert "Copyright (c) 2017 Zalando SE, https://tech.zalando.com" in text
    assert "Permission is hereby granted, free of charge" in text


def test_shapes_and_types(splits: Splits) -> None:
    for (x, y), n in ((splits.train, 3000), (splits.validation, 1000), (splits.test, 6000)):
        assert x.shape == (n, 1, 28, 28)
        assert x.dtype == torch.float32
        assert y.shape == (n,)
        assert y.dtype == torch.int64
    assert len(splits.classes) == 10


def test_the_parts_are_disjoint_and_together_the_whole(splits: Splits) -> None:
    images = read_idx(FOLDER / "t10k-images-idx3-ubyte.gz", dimensions=3)
    found = [image for x, _ in (splits.train, splits.validation, splits.test) for image in pixels(x)]
    assert sorted(found) == sorted(image.numpy().tobytes() for image in images)
    # The published set holds no image twice, so disjoint images are disjoint examples.
    assert len(set(found)) == 10_000


def test_labels_stay_with_their_images(splits: Splits) -> None:
    images = read_idx(FOLDER / "t10k-images-idx3-ubyte.gz", dimensions=3)
    labels = read_idx(FOLDER / "t10k-labels-idx1-ubyte.gz", dimensions=1)
    truth = {image.numpy().tobytes(): int(label) for image, label in zip(images, labels, strict=True)}
    for x, y in (splits.train, splits.validation, splits.test):
        assert [truth[image] for image in pixels(x)] == y.tolist()


def test_every_class_has_about_a_tenth(splits: Splits) -> None:
    for _, y in (splits.train, splits.validation, splits.test):
        share = torch.bincount(y, minlength=10) / len(y)
        # Four standard deviations of a share in a part of this size.
        assert (share - 0.1).abs().max() < 4 * math.sqrt(0.09 / len(y))
    total = sum(torch.bincount(y) for _, y in (splits.train, splits.validation, splits.test))
    assert torch.as_tensor(total).tolist() == [1000] * 10


def test_standardised_by_the_training_part_alone(splits: Splits) -> None:
    x = splits.train[0].double()
    assert x.mean().item() == pytest.approx(0, abs=1e-6)
    assert x.std().item() == pytest.approx(1, abs=1e-5)
    other = splits.test[0].double()
    assert 1e-5 < abs(other.mean().item()) < 0.05
    assert other.min().item() == pytest.approx(x.min().item(), abs=1e-6)


def test_the_seed_decides(splits: Splits) -> None:
    again, other = fashion_mnist(), fashion_mnist(seed=1)
    for part in ("train", "validation", "test"):
        for same, different, first in zip(getattr(again, part), getattr(other, part), getattr(splits, part), strict=True):
            assert torch.equal(same, first)
            assert not torch.equal(different, first)


def test_the_global_generator_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    fashion_mnist(train=100, validation=10, seed=7)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_every_example_but_one_may_be_taken() -> None:
    splits = fashion_mnist(train=9_000, validation=999)
    assert [len(y) for _, y in (splits.train, splits.validation, splits.test)] == [9_000, 999, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train": 0}, "`train` to be a positive integer, but got 0"),
        ({"train": 10.0}, "`train` to be a positive integer, but got 10.0"),
        ({"train": True}, "`train` to be a positive integer, but got True"),
        ({"validation": -5}, "`validation` to be a positive integer, but got -5"),
        ({"train": 9_000, "validation": 1_000}, "10000 examples for testing, but got 9000 and 1000"),
        ({"train": 20_000}, "but got 20000 and 1000"),
    ],
)
def test_bad_sizes_are_quoted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        fashion_mnist(**arguments)


def header(*shape: int, kind: int = 8) -> bytes:
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, kind, len(shape), *shape)


def test_idx_is_read_in_row_order(tmp_path: Path) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(header(2, 2, 3) + bytes(range(12)), mtime=0))
    assert torch.equal(read_idx(path, dimensions=3), torch.arange(12, dtype=torch.uint8).reshape(2, 2, 3))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"plain text", "not a complete gzip file"),
        (gzip.compress(header(3) + b"abc", mtime=0)[:-9], "not a complete gzip file"),
        (gzip.compress(header(3, kind=9) + b"abc", mtime=0), "start with the bytes 00 00 08 01 .* but got 00 00 09 01"),
        (gzip.compress(header(3, 1) + b"abc", mtime=0), "but got 00 00 08 02"),
        (gzip.compress(b"", mtime=0), "but got nothing"),
        (gzip.compress(header(3)[:6], mtime=0), "ends inside its header, after 6 of 8 bytes"),
        (gzip.compress(header(3) + b"ab", mtime=0), r"hold 3 bytes for its shape \[3\], but got 2"),
        (gzip.compress(header(3) + b"abcd", mtime=0), "but got 4"),
    ],
    ids=["no gzip", "torn gzip", "type", "dimensions", "empty", "torn header", "too short", "too long"],
)
def test_a_damaged_file_has_a_named_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "labels.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_idx(path, dimensions=1)
    assert "labels.gz" in str(caught.value)


def test_a_missing_file_has_a_named_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"There is no file .*gone\.gz"):
        read_idx(tmp_path / "gone.gz", dimensions=1)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (header(1, 28, 28) + bytes(784), header(2) + bytes(2), "as many 28×28 images as labels"),
        (header(1, 14, 14) + bytes(196), header(1) + bytes(1), r"images \[1, 14, 14\]"),
        (header(1, 28, 28) + bytes(784), header(1) + bytes([10]), "0 … 9, but got 10"),
    ],
)
def test_files_that_do_not_fit_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, images: bytes, labels: bytes, message: str
) -> None:
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(images, mtime=0))
    (tmp_path / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels, mtime=0))
    monkeypatch.setattr(fashion_images, "_FOLDER", tmp_path)
    with pytest.raises(DataError, match=message):
        fashion_mnist()
