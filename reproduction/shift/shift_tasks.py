"""The data of the experiments under shift, their networks, and their shifted test parts.

In the size for two cores:

| task | training | network | shifts |
|---|---|---|---|
| fashion | 3,000 images that come with calibayes | `SmallCNN`, from random weights | 15 corruptions |
| cifar10 | 2,000 images | the published ResNet-20, fine-tuned | 15 corruptions |
| newsgroups | 10,000 articles | `TextCNN`, from random weights | words replaced, words dropped |
| digits | 800 rows of 64 numbers (scikit-learn) | an MLP with one hidden layer | rows tilted, noise, missing cells |

The ResNet-20 has been trained by others on all training images of CIFAR-10, so its fine-tunings differ less than networks
trained from random weights do; its validation and test examples are test images. For the test part of each shift a fixed share
of the test examples is taken, the same for all severities and methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from calibayes.data import Splits, fashion_mnist, newsgroups
from calibayes.data.corrupt import (
    CORRUPTIONS,
    SEVERITIES,
    TABLE_SHIFTS,
    TEXT_CORRUPTIONS,
    corrupt_images,
    corrupt_texts,
    shift_table,
)
from calibayes.data.newsgroups import Texts
from calibayes.networks import MLP, InputDropout, Normalize, SmallCNN, TextCNN
from calibayes.randomness import generator_for
from reproduction.cifar10_training import check_cifar10, cifar10_parts, normalized_network, pretrained_file
from reproduction.newsgroups_training import check_newsgroups

__all__ = ["TASKS", "ShiftTask", "ShiftedPart"]

_FASHION = ((0.2860,), (0.3530,))  # mean and standard deviation of the pixels
_WORD_STEP = 101  # every so many words of the training texts are in the pool of replacements, by frequency
_SEED = 0  # of splits and shifts, the same for all trainings


class ShiftedPart(NamedTuple):
    """Test examples under one shift."""

    name: str
    severity: int
    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class ShiftTask:
    """Data and a network.

    Attributes:
        title: in tables.
        load: all three parts, limited to some number of training and test examples (the first ``None`` for all).
        network: a new network with this dropout of inputs.
        shift: the inputs of a test part under a shift of a severity, and the rows of the part that they are from.
        shifts: the names of the shifts.
        check: raises if the data are not on this machine.
        augment: whether training images are shifted and mirrored.
    """

    title: str
    load: Callable[[int | None, int | None], Splits]
    network: Callable[[float], nn.Module]
    shift: Callable[[Tensor, str, int], tuple[Tensor, Tensor]]
    shifts: tuple[str, ...]
    check: Callable[[], None]
    augment: bool = False

    def shifted(self, splits: Splits, count: int) -> Iterator[ShiftedPart]:
        """The first ``count`` test examples under every shift and severity."""
        x, y = splits.test[0][:count], splits.test[1][:count]
        for name in self.shifts:
            for severity in SEVERITIES:
                changed, rows = self.shift(x, name, severity)
                yield ShiftedPart(name, severity, changed, y[rows])


def _images(x: Tensor, name: str, severity: int) -> tuple[Tensor, Tensor]:
    return corrupt_images(x, name, severity, seed=_SEED), torch.arange(len(x))


@lru_cache(maxsize=1)
def _fashion(train: int | None, test: int | None) -> Splits:
    """Fashion-MNIST as bytes, which can be corrupted; the package has them standardised."""
    splits = fashion_mnist(3000 if train is None else train, 1000, _SEED)
    low, high = splits.train[0].min(), splits.train[0].max()  # 0 and 255, as bytes

    def stored(part: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return ((part[0] - low) / (high - low) * 255).round().to(torch.uint8), part[1]

    whole = replace(splits, train=stored(splits.train), validation=stored(splits.validation), test=stored(splits.test))
    return _limited(whole, test)


def _fashion_network(dropout: float) -> nn.Module:
    layers = [InputDropout(dropout, of="patches", patch=4)] if dropout else []
    return nn.Sequential(Normalize(*_FASHION), *layers, SmallCNN())


def _cifar10_network(dropout: float) -> nn.Module:
    net = normalized_network("resnet20", pretrained_file("resnet20"))
    return nn.Sequential(InputDropout(dropout, of="patches", patch=4), net) if dropout else net


@lru_cache(maxsize=1)
def _texts() -> Texts:
    return newsgroups(length=200)


def _newsgroups(train: int | None, test: int | None) -> Splits:
    texts = _texts()
    order = torch.randperm(len(texts.test[1]), generator=generator_for(torch.device("cpu"), _SEED, "shift", "newsgroups"))
    some = (texts.test[0][order], texts.test[1][order])  # stored group by group
    return _limited(Splits(train=texts.train, validation=texts.validation, test=some, classes=texts.classes), test, train)


def _newsgroups_network(dropout: float) -> nn.Module:
    net = TextCNN(_texts().embeddings, classes=20, channels=64, hidden=128)
    return nn.Sequential(InputDropout(dropout, of="words", replacement=0), net) if dropout else net


def _words(x: Tensor, name: str, severity: int) -> tuple[Tensor, Tensor]:
    seen = _texts().train[0]
    others = seen[seen > 0][::_WORD_STEP]
    return corrupt_texts(x, name, severity, seed=_SEED, others=others), torch.arange(len(x))


@lru_cache(maxsize=1)
def _digits(train: int | None, test: int | None) -> Splits:
    """Scikit-learn's digits as a table: 64 numbers a row, standardised by the training rows."""
    from sklearn.datasets import load_digits

    x, y = (torch.from_numpy(each) for each in load_digits(return_X_y=True))
    order = torch.randperm(len(y), generator=generator_for(torch.device("cpu"), _SEED, "shift", "digits"))
    x, y = x[order].float(), y[order].long()
    mean, std = x[:800].mean(0), x[:800].std(0).clamp_min(1.0)  # some columns are nearly always zero
    x = (x - mean) / std
    parts = {"train": (x[:800], y[:800]), "validation": (x[800:1100], y[800:1100]), "test": (x[1100:], y[1100:])}
    return _limited(Splits(classes=tuple("0123456789"), **parts), test, train)


def _digits_network(dropout: float) -> nn.Module:
    net = MLP(64, [64], classes=10)
    return nn.Sequential(InputDropout(dropout), net) if dropout else net


def _rows(x: Tensor, name: str, severity: int) -> tuple[Tensor, Tensor]:
    """Columns have a standard deviation of one, and a mean of zero, which replaces missing cells."""
    return shift_table(x, name, severity, seed=_SEED, scale=torch.ones(x.shape[1]), fill=0.0)


def _limited(splits: Splits, test: int | None, train: int | None = None) -> Splits:
    def first(part: tuple[Tensor, Tensor], count: int | None) -> tuple[Tensor, Tensor]:
        return part[0][:count], part[1][:count]

    parts = first(splits.train, train), first(splits.validation, test), first(splits.test, test)
    return replace(splits, train=parts[0], validation=parts[1], test=parts[2])


def _no_download() -> None:
    """Nothing is needed that does not come with the packages."""


_CIFAR10: dict[str, Any] = {"network": "resnet20", "pretrained": True}

TASKS: Mapping[str, ShiftTask] = {
    "fashion": ShiftTask("Fashion-MNIST, a small CNN", _fashion, _fashion_network, _images, CORRUPTIONS, _no_download),
    "cifar10": ShiftTask(
        "CIFAR-10, the published ResNet-20 fine-tuned",
        cifar10_parts,
        _cifar10_network,
        _images,
        CORRUPTIONS,
        lambda: check_cifar10(_CIFAR10),
        augment=True,
    ),
    "newsgroups": ShiftTask(
        "20 Newsgroups, a text CNN",
        _newsgroups,
        _newsgroups_network,
        _words,
        TEXT_CORRUPTIONS,
        lambda: check_newsgroups({}),
    ),
    "digits": ShiftTask("digits as a table, an MLP", _digits, _digits_network, _rows, TABLE_SHIFTS, _no_download),
}
