"""What the methods are compared on: data, a network, and the settings that the two bases are chosen from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import nn

from calibayes.data import Splits, fashion_mnist
from calibayes.data.newsgroups import newsgroups
from calibayes.networks import InputDropout, SmallCNN, TextCNN

__all__ = ["TASKS", "Task", "task_named"]


@dataclass(frozen=True)
class Task:
    """A data set and a network.

    Attributes:
        name: of its folder.
        title: what tables call it.
        seeds: how many.
        members: of ensembles.
        epochs: of every training from the start, unless the base has its own; methods that start from a trained point add half
            as many.
        batch_size: $|B|$.
        samples: $S$, networks behind a prediction of a single random posterior.
        bases: for each base the settings to choose from: those of `calibayes.methods.MethodSettings`,
            ``schedule`` of the learning rate (to zero along a cosine, or constant), ``epochs`` and ``input_dropout``.
        methods: the names of the methods that are compared; all of them if empty.
    """

    name: str
    title: str
    seeds: int
    members: int
    epochs: int
    batch_size: int
    samples: int
    bases: Mapping[str, tuple[dict[str, Any], ...]]
    methods: tuple[str, ...] = ()

    def splits(self) -> Splits:
        """Training, validation and test examples, the same for all seeds."""
        return _splits(self.name)

    def network(self, input_dropout: float) -> nn.Module:
        """A network with initial weights from PyTorch's global generator."""
        if self.name == "newsgroups":
            texts = _texts()
            net: nn.Module = TextCNN(texts.embeddings, classes=20, channels=64, hidden=128)
            layer = InputDropout(input_dropout, of="words", replacement=0)
        else:
            net, layer = SmallCNN(), InputDropout(input_dropout, of="patches", patch=4)
        return nn.Sequential(layer, net) if input_dropout > 0 else net


FASHION = Task(
    name="fashion-mnist",
    title="Fashion-MNIST, 4,000 training images, a small CNN",
    seeds=5,
    members=4,
    epochs=16,
    batch_size=64,
    samples=20,
    bases={
        "plain": tuple(
            {"learning_rate": rate, "schedule": schedule}
            for rate in (0.001, 0.002, 0.005)
            for schedule in ("cosine", "constant")
        ),
        "regularised": tuple(
            {"learning_rate": 0.005, "schedule": schedule, "weight_decay": 0.1, "ema": 0.99, "input_dropout": drop}
            for drop in (0.05, 0.1, 0.2)
            for schedule in ("cosine", "constant")
        ),
    },
)

NEWSGROUPS = Task(
    name="newsgroups",
    title="20 Newsgroups, a text CNN with 64 channels",
    seeds=3,
    members=3,
    epochs=16,
    batch_size=128,
    samples=16,
    bases={
        "plain": tuple(
            {"learning_rate": rate, "schedule": schedule, "epochs": epochs}
            for rate, schedule, epochs in (
                (0.001, "constant", 16),
                (0.002, "constant", 8),
                (0.002, "constant", 16),
                (0.002, "cosine", 16),
                (0.002, "cosine", 32),
                (0.004, "cosine", 16),
            )
        ),
        "regularised": tuple(
            {
                "learning_rate": 0.002,
                "schedule": schedule,
                "epochs": 32,
                "weight_decay": 0.05,
                "ema": 0.998,
                "input_dropout": drop,
            }
            for drop in (0.2, 0.3, 0.4)
            for schedule in ("cosine", "constant")
        ),
    },
    methods=("fnn", "mc-dropout", "ensemble", "dropout-ensemble"),
)

TASKS = {task.name: task for task in (FASHION, NEWSGROUPS)}


def task_named(name: str) -> Task:
    """The task of this name."""
    if name not in TASKS:
        raise SystemExit(f"Expected one of the tasks {', '.join(TASKS)}, but got {name!r}.")
    return TASKS[name]


@lru_cache(maxsize=1)
def _texts() -> Any:
    return newsgroups(length=200, keep="end")


@lru_cache(maxsize=1)
def _splits(name: str) -> Splits:
    if name == "newsgroups":
        texts = _texts()
        return Splits(train=texts.train, validation=texts.validation, test=texts.test, classes=texts.classes)
    splits = fashion_mnist(4000, 1000, seed=0)
    x, y = splits.test
    wide = [
        (images.to(memory_format=torch.channels_last), labels)
        for images, labels in (splits.train, splits.validation, (x[:5000], y[:5000]))
    ]
    return Splits(train=wide[0], validation=wide[1], test=wide[2], classes=splits.classes)
