"""One training on 20 Newsgroups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal

import torch
from torch import Tensor

from calibayes.checks import positive_integer
from calibayes.data.glove import glove_file
from calibayes.data.newsgroups import Texts, newsgroups, newsgroups_folder
from calibayes.networks import TextCNN
from calibayes.recipes.single_training import TrainingSettings, train_and_score

__all__ = ["NewsgroupsTraining", "check_newsgroups", "newsgroups_trial"]


@dataclass(frozen=True, kw_only=True)
class NewsgroupsTraining(TrainingSettings):
    """The settings of a training of the convolutional network with global pooling on 20 Newsgroups."""

    length: int = 1000  # words of an article that the network sees
    keep: Literal["start", "end"] = "end"  # which end of longer articles they are from
    channels: int = 128  # of each convolution
    hidden: int = 128  # the width of the dense layer
    pooling: Literal["max", "average"] = "max"  # over the text
    train: int | None = None  # training articles; all by default
    test: int | None = None  # validation and test articles, each; all by default


def newsgroups_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train and test with these settings; names are those of `NewsgroupsTraining`."""
    chosen = NewsgroupsTraining.of(settings)
    texts = _texts(chosen.length, chosen.keep)
    validation, test = (_some(part, chosen.test) for part in (texts.validation, texts.test))
    texts = replace(texts, train=_some(texts.train, chosen.train), validation=validation, test=test)
    sizes: dict[str, Any] = {name: getattr(chosen, name) for name in ("pooling", "channels", "hidden")}
    return train_and_score(chosen, texts, partial(TextCNN, texts.embeddings, classes=len(texts.classes), **sizes))


# The name in existing records, from before it moved here.
newsgroups_trial.__module__ = "calibayes.recipes.reproduce.newsgroups"


def check_newsgroups(settings: Mapping[str, Any]) -> None:
    """Raise if the data of a training are not on this machine."""
    newsgroups_folder()
    glove_file()


def _some(part: tuple[Tensor, Tensor], count: int | None) -> tuple[Tensor, Tensor]:
    """``count`` examples of a part, spread over it evenly."""
    x, y = part
    if count is None:
        return part
    index = torch.linspace(0, len(y) - 1, min(positive_integer("count", count), len(y))).long()
    return x[index], y[index]


@lru_cache(maxsize=1)
def _texts(length: int, keep: Literal["start", "end"]) -> Texts:
    return newsgroups(length=length, keep=keep)
