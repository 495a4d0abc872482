"""The data of the comparison: training, validation and test examples, shifted test examples, outsiders, and networks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.methods.cifar_network import CIFARNetwork
from calibayes.data import Splits
from calibayes.data.cifar10 import cifar10
from calibayes.data.corrupt import CORRUPTIONS, TABLE_SHIFTS, TEXT_CORRUPTIONS, corrupt_images, corrupt_texts, shift_table
from calibayes.data.data_folder import data_folder
from calibayes.data.fashion_images import read_idx
from calibayes.data.newsgroups import newsgroups
from calibayes.data.word_indices import sequences, words
from calibayes.networks import CIFAR10, MLP, InputDropout, Normalize, SmallCNN, TextCNN
from calibayes.networks.table_inputs import TableInputs
from calibayes.networks.text_network import TextNetwork
from calibayes.networks.word_weights import WordWeights
from calibayes.randomness import generator_for
from reproduction.followup_images import cifar100_images
from reproduction.followup_texts import clinc150_file
from reproduction.followup_texts import text_data as clinc150_data
from reproduction.shift.people import people_of_official_images

__all__ = ["SEVERITIES", "TaskData", "data_of"]

SEVERITIES = (1, 3, 5)
_SEED = 0  # of splits and shifts, the same for all trainings
_FASHION = ((0.2860,), (0.3530,))  # mean and standard deviation of the pixels
_CLASSES = 10
_FASHION_VALIDATION = 5000
_OUTSIDERS = 2000
_WORD_STEP = 101  # every so many words of the training texts are in the pool of replacements, by frequency
_HIDDEN = [128, 128]  # of networks for tables


@dataclass(frozen=True, kw_only=True)
class TaskData:
    """What a network is trained and scored on.

    Attributes:
        splits: training, validation and test examples.
        network: a new network with this share of its inputs hidden in training; initial weights from the global generator.
        shift: test inputs under a shift of a severity, and the rows that they are from.
        shifts: the names of the shifts.
        outsiders: inputs of no known class, by their source.
        people: how many people chose each class for each test example.
        first_layer: of learners that train no network, where there are some.
        augment: whether training images are moved and mirrored.
    """

    splits: Splits
    network: Callable[[float], nn.Module]
    shift: Callable[[Tensor, str, int], tuple[Tensor, Tensor]]
    shifts: tuple[str, ...]
    outsiders: Mapping[str, Tensor] = field(default_factory=dict)
    people: Tensor | None = None
    first_layer: nn.Module | None = None
    augment: bool = False
    _kept: dict[int, list[tuple[int, Tensor, Tensor]]] = field(default_factory=dict, repr=False)

    def shifted(self, count: int) -> list[tuple[int, Tensor, Tensor]]:
        """Severity, inputs and classes of ``count`` test examples, drawn once, under every shift; kept for the next call."""
        if count not in self._kept:
            x, y = self.splits.test
            order = torch.randperm(len(y), generator=generator_for(torch.device("cpu"), _SEED, "shifted"))[:count]
            changed = [(severity, *self.shift(x[order], name, severity)) for name in self.shifts for severity in SEVERITIES]
            self._kept[count] = [(severity, inputs, y[order][rows]) for severity, inputs, rows in changed]
        return self._kept[count]


def data_of(task: str, seed: int) -> TaskData:
    """The data of a task; of tables, the seed decides which rows are for validation, all others are the same for all seeds."""
    return _table(task.removeprefix("table-"), seed) if task.startswith("table-") else _LOADED[task]()


@lru_cache(maxsize=1)
def _fashion() -> TaskData:
    folder = data_folder() / "fashion-mnist"
    parts = {
        part: (
            read_idx(folder / f"{part}-images-idx3-ubyte.gz", 3)[:, None],
            read_idx(folder / f"{part}-labels-idx1-ubyte.gz", 1).long(),
        )
        for part in ("train", "t10k")
    }
    x, y = parts["train"]
    order = torch.randperm(len(y), generator=generator_for(torch.device("cpu"), _SEED, "fashion"))
    held_out, learnt = order[:_FASHION_VALIDATION], order[_FASHION_VALIDATION:]
    digits = read_idx(data_folder() / "mnist" / "t10k-images-idx3-ubyte.gz", 3)[:_OUTSIDERS, None]
    return TaskData(
        splits=Splits(
            train=(x[learnt], y[learnt]),
            validation=(x[held_out], y[held_out]),
            test=parts["t10k"],
            classes=tuple(map(str, range(_CLASSES))),
        ),
        network=partial(_with_hidden_patches, Normalize(*_FASHION), SmallCNN),
        shift=_shifted_images,
        shifts=CORRUPTIONS,
        outsiders={"MNIST": digits},
    )


@lru_cache(maxsize=1)
def _cifar10() -> TaskData:
    return TaskData(
        splits=cifar10(),
        network=partial(_with_hidden_patches, Normalize(*CIFAR10), CIFARNetwork),
        shift=_shifted_images,
        shifts=CORRUPTIONS,
        outsiders={"CIFAR-100": cifar100_images()[:_OUTSIDERS]},
        people=people_of_official_images(),
        augment=True,
    )


def _with_hidden_patches(normalize: Normalize, make: Callable[[], nn.Module], share: float) -> nn.Module:
    hidden = [InputDropout(share, of="patches", patch=4)] if share else []
    return nn.Sequential(normalize, *hidden, make())


def _shifted_images(x: Tensor, name: str, severity: int) -> tuple[Tensor, Tensor]:
    return corrupt_images(x, name, severity, seed=_SEED), torch.arange(len(x))


@lru_cache(maxsize=1)
def _newsgroups(training: int | None = None) -> TaskData:
    texts = newsgroups(length=200)
    if training is not None:
        order = torch.randperm(len(texts.train[1]), generator=generator_for(torch.device("cpu"), _SEED, "few"))[:training]
        texts = replace(texts, train=(texts.train[0][order], texts.train[1][order]))
    stored = json.loads(clinc150_file().read_text(encoding="utf-8"))["test"]  # one intent after the other
    drawn = torch.randperm(len(stored), generator=generator_for(torch.device("cpu"), _SEED, "outsiders"))[:_OUTSIDERS]
    requests = [words(stored[place][0].encode("latin-1", "replace")) for place in drawn.tolist()]
    bags = sequences([list(dict.fromkeys(text)) for text in requests], texts.vocabulary, 200)
    return TaskData(
        splits=texts,
        network=partial(_with_hidden_words, partial(TextCNN, texts.embeddings, classes=20, channels=64, hidden=128)),
        shift=partial(_shifted_words, _frequent(texts.train[0])),
        shifts=TEXT_CORRUPTIONS,
        outsiders={"requests of CLINC150": bags},
        first_layer=WordWeights(1 + len(texts.vocabulary)).fit(texts.train[0]),
    )


@lru_cache(maxsize=1)
def _clinc150() -> TaskData:
    data, weights = clinc150_data(None, None, None)
    return TaskData(
        splits=data.splits,
        network=partial(
            _with_hidden_words, partial(TextNetwork, weights, classes=len(data.splits.classes), word_dropout=0.0, dropout=0.0)
        ),
        shift=partial(_shifted_words, _frequent(data.splits.train[0])),
        shifts=TEXT_CORRUPTIONS,
        outsiders={"out of scope": data.outsiders[next(iter(data.outsiders))]},
        first_layer=weights,
    )


def _with_hidden_words(make: Callable[[], nn.Module], share: float) -> nn.Module:
    return nn.Sequential(InputDropout(share, of="words", replacement=0), make()) if share else make()


def _frequent(tokens: Tensor) -> Tensor:
    return tokens[tokens > 0][::_WORD_STEP]


def _shifted_words(others: Tensor, x: Tensor, name: str, severity: int) -> tuple[Tensor, Tensor]:
    return corrupt_texts(x, name, severity, seed=_SEED, others=others), torch.arange(len(x))


@lru_cache(maxsize=8)
def _table(name: str, seed: int) -> TaskData:
    """30 % of the rows are for testing, always the same; a fifth of the others for validation."""
    from sklearn.model_selection import train_test_split

    from benchmarks.tabular_sets import split

    rows = split(name, _SEED)
    frames, labels = (rows.train, rows.test), (rows.train_targets, rows.test_targets)
    numbers = [column for column in rows.train.columns if rows.train[column].dtype.kind in "fiu"]
    named = [column for column in rows.train.columns if column not in numbers]
    values = [
        np.column_stack(
            [frame[numbers].to_numpy(np.float32), *(frame[column].cat.codes.to_numpy(np.float32) for column in named)]
        )
        for frame in frames
    ]
    learnt, held_out = train_test_split(np.arange(len(labels[0])), test_size=0.2, stratify=labels[0], random_state=seed)
    inputs = TableInputs(
        range(len(numbers)),
        [(len(numbers) + place, len(rows.train[column].cat.categories)) for place, column in enumerate(named)],
    ).fit(values[0][learnt])
    classes = int(labels[0].max()) + 1

    def part(which: int, places: Any = slice(None)) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(values[which][places]), torch.from_numpy(labels[which][places]).long()

    def network(share: float) -> nn.Module:
        hidden = [InputDropout(share)] if share else []
        return nn.Sequential(inputs, *hidden, MLP(inputs.width, _HIDDEN, classes=classes))

    def shift(x: Tensor, shift: str, severity: int) -> tuple[Tensor, Tensor]:
        """Numbers alone are shifted; missing ones become NaN, which the first layer knows."""
        changed, rows = shift_table(x[:, : len(numbers)], shift, severity, seed=_SEED)
        return torch.cat([changed, x[rows, len(numbers) :]], 1), rows

    return TaskData(
        splits=Splits(
            train=part(0, learnt), validation=part(0, held_out), test=part(1), classes=tuple(map(str, range(classes)))
        ),
        network=network,
        shift=shift,
        shifts=TABLE_SHIFTS if numbers else (),
        first_layer=inputs,
    )


_LOADED: dict[str, Callable[[], TaskData]] = {
    "fashion-mnist": _fashion,
    "cifar10": _cifar10,
    "newsgroups": _newsgroups,
    "newsgroups-1000": partial(_newsgroups, 1000),
    "newsgroups-long": partial(_newsgroups, 2000),
    "clinc150": _clinc150,
}
