"""One fine-tuning on CIFAR-10."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from calibayes.data import Splits
from calibayes.data.cifar10 import cifar10, cifar10_folder
from calibayes.data.data_folder import data_folder, required
from calibayes.errors import DataError
from calibayes.networks import CIFAR10, IMAGENET, Normalize, load_weights, resnet18, resnet20
from calibayes.randomness import generator_for
from calibayes.recipes.single_training import TrainingSettings, train_and_score

__all__ = [
    "CIFAR10Training",
    "check_cifar10",
    "cifar10_parts",
    "cifar10_test_order",
    "cifar10_trial",
    "normalized_network",
    "pretrained_file",
]

_VALIDATION = 2000


@dataclass(frozen=True, kw_only=True)
class CIFAR10Training(TrainingSettings):
    """The settings of fine-tuning a residual network on CIFAR-10."""

    # ResNet-20 starts from published weights, ResNet-18 from those of `cifar10-pretrain`; 3x3 has a stem for small images.
    network: Literal["resnet20", "resnet18", "resnet18-3x3"] = "resnet20"
    train: int | None = None  # training images; all by default
    test: int | None = None  # test images; all by default
    augment: bool = True  # shift and mirror the training images
    pretrained: bool = True  # start from the weights; otherwise from random ones


def cifar10_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train and test with these settings; names are those of `CIFAR10Training`."""
    chosen = CIFAR10Training.of(settings)
    start = pretrained_file(chosen.network) if chosen.pretrained else None
    network = partial(normalized_network, chosen.network, start)
    return train_and_score(chosen, cifar10_parts(chosen.train, chosen.test), network, augment=chosen.augment)


# The name in existing records, from before it moved here.
cifar10_trial.__module__ = "calibayes.recipes.reproduce.cifar10"


def check_cifar10(settings: Mapping[str, Any]) -> None:
    """Raise if the data of a training, or the weights that it starts from, are not on this machine."""
    cifar10_folder()
    if settings["pretrained"]:
        pretrained_file(settings["network"])


def normalized_network(name: str, weights: Path | None) -> nn.Module:
    """A network behind a layer that normalises bytes, as its weights expect."""
    net = resnet20() if name == "resnet20" else resnet18(stem="cifar" if name == "resnet18-3x3" else "imagenet")
    if weights is not None:
        load_weights(net, weights)
    return nn.Sequential(Normalize(*(IMAGENET if name == "resnet20" else CIFAR10)), net)


def pretrained_file(name: str) -> Path:
    """The file with the weights of a network, or an error that says how to get it."""
    if name == "resnet20":
        return required(data_folder() / "resnet20" / "resnet20-cifar10.safetensors", "resnet20", "The published ResNet-20")
    path = data_folder() / name / f"{name}-cifar10.safetensors"
    if not path.is_file():
        raise DataError(
            f"Expected the weights of {name} in {str(path)!r}, but there are none. "
            f"To train them, run: `calibayes reproduce cifar10-pretrain{' --preset paper' if name == 'resnet18-3x3' else ''}`."
        )
    return path


@lru_cache(maxsize=1)
def cifar10_parts(train: int | None = None, test: int | None = None) -> Splits:
    """CIFAR-10 with all 50,000 training images, as in the paper, 2,000 of the test images for validation, and 8,000 for tests.

    The published ResNet-20 has seen every training image, so a temperature fitted on some of them would be wrong. ``test``
    limits both other parts.
    """
    whole = cifar10(train=train, validation=0)
    x, y = whole.test
    held_out, tested = _test_order()[:_VALIDATION][:test], cifar10_test_order(test)
    return replace(whole, validation=(x[held_out], y[held_out]), test=(x[tested], y[tested]))


def cifar10_test_order(test: int | None = None) -> Tensor:
    """Where the test part of `cifar10_parts` is among the 10,000 official test images."""
    return _test_order()[_VALIDATION:][:test]


def _test_order() -> Tensor:
    return torch.randperm(10_000, generator=generator_for(torch.device("cpu"), 0, "cifar10", "validation"))
