"""Fashion-MNIST, the data set that needs no download, from files in the idx format of MNIST."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import torch
from torch import Tensor

from calibayes.checks import positive_integer
from calibayes.data.splits import Splits
from calibayes.errors import DataError, InvalidArgumentError

__all__ = ["fashion_mnist", "read_idx"]

_FOLDER = Path(__file__).with_name("fashion_mnist")
_CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
_UNSIGNED_BYTE = 0x08


def fashion_mnist(train: int = 3000, validation: int = 1000, seed: int = 0) -> Splits:
    r"""Load 10,000 grey images of clothes in ten classes, in three parts; they come with the package.

    These are the images that Fashion-MNIST publishes as its test set, shuffled by ``seed`` and cut into a training part,
    a validation part, and the rest for testing. Results are therefore not comparable with those on the official split.
    Pixels are scaled to $[0, 1]$ and standardised by the mean and standard deviation of the training part alone.

    Args:
        train: the number of training examples.
        validation: the number of validation examples.
        seed: the seed of the shuffle; the same seed gives the same parts.

    Examples:
        >>> splits = fashion_mnist()
        >>> for x, y in (splits.train, splits.validation, splits.test):
        ...     print(tuple(x.shape), tuple(y.shape))
        (3000, 1, 28, 28) (3000,)
        (1000, 1, 28, 28) (1000,)
        (6000, 1, 28, 28) (6000,)
    """
    positive_integer("train", train)
    positive_integer("validation", validation)
    images, labels = _load(_FOLDER)
    n = len(images)
    if train + validation >= n:
        raise InvalidArgumentError(
            f"Expected `train` and `validation` to leave some of the {n} examples for testing, "
            f"but got {train} and {validation}."
        )
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    parts = (order[:train], order[train : train + validation], order[train + validation :])
    mean, std = _moments(images[parts[0]])
    x = (images.float()[:, None] / 255 - mean) / std
    y = labels.long()
    first, second, third = ((x[part], y[part]) for part in parts)
    return Splits(train=first, validation=second, test=third, classes=_CLASSES)


def _moments(images: Tensor) -> tuple[float, float]:
    """Return mean and standard deviation of the pixels, scaled to [0, 1]."""
    # Sums of integers are exact, so the same seed gives the same bits whatever the number of threads.
    values = images.long()
    mean = values.sum().item() / values.numel()
    variance = values.square().sum().item() / values.numel() - mean**2
    return mean / 255, math.sqrt(variance) / 255


def _load(folder: Path) -> tuple[Tensor, Tensor]:
    images = read_idx(folder / "t10k-images-idx3-ubyte.gz", dimensions=3)
    labels = read_idx(folder / "t10k-labels-idx1-ubyte.gz", dimensions=1)
    if images.shape[1:] != (28, 28) or len(images) != len(labels):
        raise DataError(
            f"Expected as many 28×28 images as labels in {str(folder)!r}, "
            f"but got images {list(images.shape)} and labels {list(labels.shape)}. Restore the files."
        )
    if len(labels) and int(labels.max()) >= len(_CLASSES):
        raise DataError(f"Labels in {str(folder)!r} must lie in 0 … {len(_CLASSES) - 1}, but got {int(labels.max())}.")
    return images, labels


def read_idx(path: Path, dimensions: int) -> Tensor:
    """Return the array of unsigned bytes in a gzipped idx file, with 1 dimension for labels or 3 for images.

    The file is a header of big-endian integers, then bytes.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "labels.gz"
        >>> _ = path.write_bytes(gzip.compress(struct.pack(">BBBBI", 0, 0, 8, 1, 3) + bytes([7, 8, 9])))
        >>> read_idx(path, dimensions=1)
        tensor([7, 8, 9], dtype=torch.uint8)
    """
    try:
        content = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"There is no file {str(path)!r}. Reinstall calibayes, or restore the file.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{str(path)!r} is not a complete gzip file: {error}. Restore it.") from error
    expected = bytes([0, 0, _UNSIGNED_BYTE, dimensions])
    if content[:4] != expected:
        raise DataError(
            f"Expected {str(path)!r} to start with the bytes {expected.hex(' ')} (unsigned bytes in {dimensions} "
            f"dimensions), but got {content[:4].hex(' ') or 'nothing'}. Is it another file?"
        )
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise DataError(f"{str(path)!r} ends inside its header, after {len(content)} of {start} bytes. Restore it.")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    if len(content) - start != math.prod(shape):
        raise DataError(
            f"Expected {str(path)!r} to hold {math.prod(shape)} bytes for its shape {list(shape)}, "
            f"but got {len(content) - start}. Restore it."
        )
    # A bytearray, because torch wants memory that may be written to.
    return torch.frombuffer(bytearray(content), dtype=torch.uint8, offset=start).reshape(shape)
