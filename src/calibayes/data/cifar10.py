"""CIFAR-10: small colour photographs of ten kinds of things."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from calibayes.checks import non_negative_integer, positive_integer
from calibayes.data.data_folder import data_folder, required
from calibayes.data.splits import Splits
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.randomness import generator_for

__all__ = ["cifar10", "cifar10_folder"]

_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_TRAIN_FILES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
_TEST_FILES = ("test_batch.bin",)
_SHAPE = (3, 32, 32)
_PER_FILE = 10_000


def cifar10_folder(folder: str | Path | None = None) -> Path:
    """Return the folder of the files, or raise an error that says how to get it."""
    return required(data_folder(folder) / "cifar-10-batches-bin", "cifar10", "CIFAR-10")


def cifar10(
    *,
    train: int | None = None,
    validation: int = 5000,
    test: int | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
) -> Splits:
    """Load CIFAR-10: 60,000 colour images of 32×32 pixels in ten classes.

    The test part is the official one. A validation part is drawn from the 50,000 training images; the same seed gives the
    same one, whatever ``train`` is. Images are bytes, ``[n, 3, 32, 32]`` (uint8, red, green, blue), as they are stored:
    put `calibayes.networks.Normalize` in front of a network, with the moments that it expects.

    Get the data with ``calibayes data get cifar10``.

    Args:
        train: the number of training images; by default all that validation leaves.
        validation: the number of validation images; 0 for none.
        test: the number of test images, drawn at random; by default all 10,000.
        seed: which images they are.
        folder: the folder of data sets; by default ``CALIBAYES_DATA`` or the user's cache.
    """
    total = _PER_FILE * len(_TRAIN_FILES)
    non_negative_integer("validation", validation)
    if positive_integer("train", total - validation if train is None else train) + validation > total:
        raise InvalidArgumentError(
            f"Expected `train` and `validation` to need no more than the {total:,} training images, "
            f"but got {train} and {validation}."
        )
    if test is not None and positive_integer("test", test) > _PER_FILE:
        raise InvalidArgumentError(f"Expected `test` to be at most {_PER_FILE:,}, the number of test images, but got {test}.")
    root = cifar10_folder(folder)
    images, labels = _records(root, _TRAIN_FILES)
    order = torch.randperm(total, generator=generator_for(torch.device("cpu"), seed, "cifar10", "train"))
    held_out, learnt = order[:validation], order[validation:][:train]
    tested, tested_labels = _records(root, _TEST_FILES)
    chosen = torch.randperm(_PER_FILE, generator=generator_for(torch.device("cpu"), seed, "cifar10", "test"))[:test]
    return Splits(
        train=(images[learnt], labels[learnt]),
        validation=(images[held_out], labels[held_out]),
        test=(tested, tested_labels) if test is None else (tested[chosen], tested_labels[chosen]),
        classes=_CLASSES,
    )


def _records(root: Path, names: tuple[str, ...]) -> tuple[Tensor, Tensor]:
    """Return the images and labels of some files: 10,000 times a byte for the label, and 3072 for the pixels by channel."""
    length = 1 + int(np.prod(_SHAPE))
    stored = np.empty((len(names), _PER_FILE, length), dtype=np.uint8)
    for place, name in zip(stored, names, strict=True):
        path = required(root / name, "cifar10", "CIFAR-10")
        content = np.fromfile(path, dtype=np.uint8)
        if content.size != place.size:
            raise DataError(
                f"Expected {str(path)!r} to have {place.size:,} bytes, but it has {content.size:,}. "
                "Get it again: `calibayes data get cifar10`."
            )
        place[:] = content.reshape(place.shape)
    records = torch.from_numpy(stored.reshape(-1, length))
    labels = records[:, 0].long()
    if int(labels.max()) >= len(_CLASSES):
        raise DataError(
            f"Labels in {str(root)!r} must lie in 0 … {len(_CLASSES) - 1}, but one is {int(labels.max())}. "
            "Get it again: `calibayes data get cifar10`."
        )
    return records[:, 1:].reshape(-1, *_SHAPE), labels
