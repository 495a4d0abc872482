"""The follow-up's method on CIFAR-10: fine-tuning a ResNet-20, with resized ImageNet images as outsiders to train on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from calibayes.data.cifar10 import cifar10_folder
from calibayes.data.corrupt import corrupt_images
from calibayes.data.data_folder import data_folder
from calibayes.errors import DataError, MissingDataError
from calibayes.randomness import generator_for
from reproduction.cifar10_training import cifar10_parts, normalized_network, pretrained_file
from reproduction.followup_scores import KNOWN_SOURCE, NEW_SOURCE
from reproduction.followup_training import FollowUpData, FollowUpTraining, train_and_score_outsiders

__all__ = [
    "check_images",
    "cifar10_followup_trial",
    "cifar100_images",
    "published_network",
    "resized_imagenet",
]

TRAINED_ON = 6000  # of the 10,000 images of ImageNet, as in the follow-up; the others are for tests
_SHIFTS, _MILD = ("gaussian_noise", "brightness"), 1  # the least severity


def cifar10_followup_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Fine-tune and test with these settings; names are those of `FollowUpTraining`."""
    chosen = FollowUpTraining.of(settings)
    data = image_data(chosen.train, chosen.test, chosen.outsiders)
    return train_and_score_outsiders(chosen, data, published_network, augment=True)


def published_network() -> nn.Module:
    """The published ResNet-20, its batch norms in evaluation mode.

    `calibayes.fit` leaves these as they are. In training mode they would normalise a batch of outsiders by its own statistics:
    outsiders would look to the network as they never do when they are met later, among insiders.
    """
    net = normalized_network("resnet20", pretrained_file("resnet20"))
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eval()
    return net


def check_images(settings: Mapping[str, Any]) -> None:
    """Raise if the data of a training, or the weights that it starts from, are not on this machine."""
    cifar10_folder()
    pretrained_file("resnet20")
    _cifar100_file()
    _imagenet_folder()


@lru_cache(maxsize=1)
def image_data(train: int | None, test: int | None, outsiders: int | None) -> FollowUpData:
    """CIFAR-10 in three parts, outsiders of two sources, and test images with a mild shift.

    Outsiders to test on are images of ImageNet that are not trained on, and CIFAR-100, which nothing is trained on.
    """
    splits = cifar10_parts(train, test)
    images = resized_imagenet()
    x, y = splits.test
    return FollowUpData(
        splits=splits,
        outside=images[:TRAINED_ON],
        outsiders={KNOWN_SOURCE: images[TRAINED_ON:][:outsiders], NEW_SOURCE: cifar100_images()[:outsiders]},
        shifted={name: (corrupt_images(x, name, _MILD, seed=0), y) for name in _SHIFTS},
    )


def resized_imagenet(folder: str | Path | None = None) -> Tensor:
    """Images of 200 classes of ImageNet as bytes ``[10000, 3, 32, 32]``, in an order that is random but always the same."""
    from PIL import Image

    paths = sorted(_imagenet_folder(folder).glob("*.jpg"), key=lambda path: int(path.stem))
    pixels = np.stack([np.asarray(Image.open(path).convert("RGB")) for path in paths])
    if len(paths) != 10_000 or pixels.shape[1:] != (32, 32, 3):
        raise DataError(f"Expected 10,000 images of 32×32 pixels in {str(paths[0].parent)!r}, but got {list(pixels.shape)}.")
    order = torch.randperm(len(paths), generator=generator_for(torch.device("cpu"), 0, "imagenet-resize"))
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()[order]


def cifar100_images(folder: str | Path | None = None) -> Tensor:
    """The test images of CIFAR-100 as bytes ``[10000, 3, 32, 32]``, in an order that is random but always the same."""
    path = _cifar100_file(folder)
    content = np.fromfile(path, dtype=np.uint8)
    length = 2 + 3 * 32 * 32  # the coarse and the fine class come first
    if content.size != 10_000 * length:
        raise DataError(f"Expected {str(path)!r} to have {10_000 * length:,} bytes, but it has {content.size:,}.")
    images = torch.from_numpy(content.reshape(-1, length)[:, 2:].reshape(-1, 3, 32, 32).copy())
    return images[torch.randperm(len(images), generator=generator_for(torch.device("cpu"), 0, "cifar100"))]


def _cifar100_file(folder: str | Path | None = None) -> Path:
    where = "test.bin of https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"
    return _present(data_folder(folder) / "cifar-100-binary" / "test.bin", "CIFAR-100", where)


def _imagenet_folder(folder: str | Path | None = None) -> Path:
    where = "the images 0.jpg to 9999.jpg of https://github.com/kclip/Calibrating-Bayesian-Learning"
    return _present(data_folder(folder) / "imagenet-resize", "ImageNet, resized to 32×32", where)


def _present(path: Path, title: str, where: str) -> Path:
    if not path.exists():
        raise MissingDataError(f"{title} is not here: there is no {str(path)!r}. Put there {where}.")
    return path
