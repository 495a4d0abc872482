"""One training on 20 Newsgroups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

from calibayes.checks import positive_integer
from calibayes.data.glove import glove_file
from calibayes.data.newsgroups import Texts, newsgroups, newsgroups_folder
from calibayes.networks import TextCNN
from calibayes.recipes.reproduce.training import Training, trained

__all__ = ["NewsgroupsTraining", "check_newsgroups", "newsgroups_trial"]


@dataclass(frozen=True, kw_only=True)
class NewsgroupsTraining(Training):
    """`Training` of the convolutional network with global pooling on 20 Newsgroups.

    Attributes:
        length: words of an article that the network sees.
        keep: which end of longer articles they are from.
        channels: of each convolution.
        hidden: the width of the dense layer.
        pooling: ``"max"`` or ``"average"`` over the text.
        train: training articles that are used; all by default.
        test: validation and test articles that are used, each; all by default.
    """

    length: int = 1000
    keep: Literal["start", "end"] = "end"
    channels: int = 128
    hidden: int = 128
    pooling: Literal["max", "average"] = "max"
    train: int | None = None
    test: int | None = None


def newsgroups_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train and test as the settings say; names are those of `NewsgroupsTraining`."""
    chosen = NewsgroupsTraining.of(settings)
    texts = _texts(chosen.length, chosen.keep)
    texts = replace(
        texts,
        train=_some(texts.train, chosen.train),
        validation=_some(texts.validation, chosen.test),
        test=_some(texts.test, chosen.test),
    )

    def network() -> TextCNN:
        return TextCNN(
            texts.embeddings,
            classes=len(texts.classes),
            pooling=chosen.pooling,
            channels=chosen.channels,
            hidden=chosen.hidden,
        )

    return trained(chosen, texts, network)


def check_newsgroups(settings: Mapping[str, Any]) -> None:
    """Raise if the data of a training are not on this machine."""
    newsgroups_folder()
    glove_file()


def _some(part: tuple[Tensor, Tensor], count: int | None) -> tuple[Tensor, Tensor]:
    """So many examples of a part, spread over it evenly."""
    x, y = part
    if count is None:
        return part
    index = torch.linspace(0, len(y) - 1, min(positive_integer("count", count), len(y))).long()
    return x[index], y[index]


@lru_cache(maxsize=1)
def _texts(length: int, keep: Literal["start", "end"]) -> Texts:
    return newsgroups(length=length, keep=keep)
