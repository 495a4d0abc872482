"""Real texts with classes: 20 Newsgroups and the in-scope questions of CLINC150, all of them or a small part to train on."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from calibayes.data.data_folder import data_folder
from calibayes.data.newsgroups import newsgroups_articles
from calibayes.errors import MissingDataError

__all__ = ["SETS", "TextSet", "load"]

Array = npt.NDArray[Any]
# The source, and how many training texts are drawn of it; None for all.
SETS: dict[str, tuple[str, int | None]] = {
    "newsgroups": ("newsgroups", None),
    "newsgroups-2000": ("newsgroups", 2_000),
    "clinc150": ("clinc150", None),
    "clinc150-3000": ("clinc150", 3_000),
}


class TextSet(NamedTuple):
    """Texts to train on and texts to score on, with class indices and the names of the classes."""

    train: list[str]
    train_targets: Array
    test: list[str]
    test_targets: Array
    classes: tuple[str, ...]


def load(name: str, seed: int) -> TextSet:
    """Load a set with its official test part; the training texts of a small one are drawn by the seed, stratified by class."""
    source, size = SETS[name]
    texts = _newsgroups() if source == "newsgroups" else _clinc150()
    if size is None:
        return texts
    drawn = train_test_split(np.arange(len(texts.train)), train_size=size, stratify=texts.train_targets, random_state=seed)[0]
    return texts._replace(train=[texts.train[row] for row in drawn], train_targets=texts.train_targets[drawn])


def _newsgroups() -> TextSet:
    """Articles without their headers, split by date."""
    train, test = newsgroups_articles("train"), newsgroups_articles("test")
    return TextSet(train.texts, train.targets.numpy(), test.texts, test.targets.numpy(), train.classes)


def _clinc150() -> TextSet:
    """Short questions of 150 intents, a hundred each to train on; out-of-scope questions are left out."""
    path = data_folder() / "clinc150" / "data_full.json"
    if not path.exists():
        raise MissingDataError(
            f"CLINC150 is not here: there is no {str(path)!r}. Put the file data_full.json of its authors' repository "
            "(clinc/oos-eval on GitHub) there, or set CALIBAYES_DATA to the folder that holds it."
        )
    parts = json.loads(path.read_text(encoding="utf-8"))
    classes = tuple(sorted({label for _, label in parts["train"]}))
    index = {label: place for place, label in enumerate(classes)}
    texts, targets = {}, {}
    for part in ("train", "test"):
        texts[part] = [text for text, _ in parts[part]]
        targets[part] = np.array([index[label] for _, label in parts[part]])
    return TextSet(texts["train"], targets["train"], texts["test"], targets["test"], classes)
