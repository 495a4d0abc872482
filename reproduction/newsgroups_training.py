"""One training on 20 Newsgroups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from calibayes.checks import positive_integer
from calibayes.data.glove import glove_file
from calibayes.data.newsgroups import Texts, newsgroups, newsgroups_folder
from calibayes.methods.term_weights import has_beta, has_lam
from calibayes.networks import TextCNN
from calibayes.recipes.single_training import TrainingSettings, train_and_score

__all__ = ["NewsgroupsTraining", "check_newsgroups", "newsgroups_settings", "newsgroups_task", "newsgroups_trial"]

# Printed in the paper: β = 0.1, prior 0.05, τ_r = 0.001, τ_c = 0.01, γ = 0.4, RMSprop with 0.002, and λ = 10 in Fig. 1; these
# are the defaults of `TrainingSettings`. For the rest, see docs/explanation/reproduction.md.
_SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"length": 150, "channels": 8, "hidden": 16, "train": 400, "test": 300, "epochs": 2}
    | {"predictive_samples": 3, "epoch_samples": 2},
    "cpu": {"length": 200, "channels": 64, "hidden": 128, "epochs": 16},
    "paper": {"length": 1000, "channels": 128, "hidden": 128, "epochs": 20, "predictive_samples": 50},
}
_BAYESIAN = {"tiny": {"epochs": 2}, "cpu": {"epochs": 32, "evaluate_every": 4}, "paper": {"epochs": 40, "evaluate_every": 2}}


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


def newsgroups_settings(preset: str, scheme: str, seeds: Sequence[int], **others: Any) -> tuple[NewsgroupsTraining, ...]:
    """The settings of a scheme in a preset, for several seeds; ``others`` replace some of them."""
    given = _SIZES[preset] | ({"beta": 0.1, **_BAYESIAN[preset]} if has_beta(scheme) else {})
    given |= {"lam": 10.0} if has_lam(scheme) else {}
    return tuple(NewsgroupsTraining(scheme=scheme, seed=seed, **(given | others)) for seed in seeds)


def newsgroups_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train and test with these settings; names are those of `NewsgroupsTraining`."""
    chosen = NewsgroupsTraining.of(settings)
    return train_and_score(chosen, *newsgroups_task(chosen, chosen.train))


# The name in existing records, from before it moved here.
newsgroups_trial.__module__ = "calibayes.recipes.reproduce.newsgroups"


def newsgroups_task(chosen: NewsgroupsTraining, train: int | None) -> tuple[Texts, Callable[[], nn.Module]]:
    """The articles, ``train`` of them in the training part, and a function that returns a new network."""
    texts = _texts(chosen.length, chosen.keep)
    validation, test = (_some(part, chosen.test) for part in (texts.validation, texts.test))
    texts = replace(texts, train=_some(texts.train, train), validation=validation, test=test)
    sizes: dict[str, Any] = {name: getattr(chosen, name) for name in ("pooling", "channels", "hidden")}
    return texts, partial(TextCNN, texts.embeddings, classes=len(texts.classes), **sizes)


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
