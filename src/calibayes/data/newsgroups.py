"""20 Newsgroups: Usenet articles, classified by the group that they were posted to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from calibayes.checks import non_negative_integer, positive_integer
from calibayes.data.data_folder import data_folder, required, visible
from calibayes.data.glove import glove
from calibayes.data.splits import Splits
from calibayes.data.word_indices import frequent_words, sequences, words
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.randomness import generator_for

__all__ = ["ARTICLES", "Articles", "Texts", "newsgroups", "newsgroups_articles", "newsgroups_folder"]

ARTICLES = {"train": 11_314, "test": 7_532}
_HEADERS = re.compile(rb"\A.*?\n\r?\n", re.DOTALL)


@dataclass(frozen=True, eq=False, kw_only=True)
class Texts(Splits):
    """`Splits` of texts as word indices ``[n, length]``, with the words and their vectors.

    Attributes:
        vocabulary: the words of indices 1, 2, …; index 0 is padding.
        embeddings: a vector for each index, ``[1 + len(vocabulary), 100]`` (float32): what `TextCNN` takes.
    """

    vocabulary: tuple[str, ...]
    embeddings: Tensor


class Articles(NamedTuple):
    """Texts as they were written, for tokenizers: one string each, the index of its group, and the groups' names."""

    texts: list[str]
    targets: Tensor
    classes: tuple[str, ...]


def newsgroups_folder(folder: str | Path | None = None) -> Path:
    """Return the folder of both parts, or raise an error that says how to get it."""
    return required(data_folder(folder) / "20news-bydate", "newsgroups", "20 Newsgroups")


def newsgroups(
    *,
    length: int = 1000,
    vocabulary: int = 20_000,
    validation: int = 1314,
    seed: int = 0,
    keep: Literal["start", "end"] = "end",
    headers: bool = False,
    folder: str | Path | None = None,
) -> Texts:
    """Load 20 Newsgroups, split by date: 18,846 articles of twenty groups, as word indices with GloVe vectors.

    The test part is the official one, 7,532 articles that are younger than all others of their group. A validation part
    is drawn from the 11,314 training articles at random; being as old as those, it is somewhat easier than the test part.
    The headers (sender, subject, organisation and others, which give much away) are cut off: everything to the first
    blank line; an article without one is kept whole. Signatures and quotations stay. Texts become words as Keras's
    ``Tokenizer`` makes them: lower case, split at white space and at all punctuation but the apostrophe. The vocabulary
    is counted on the training part alone, without validation and test; words outside it are left out. A word without a
    GloVe vector has a vector of zeros, as has padding.

    Get the data with ``calibayes data get newsgroups glove``.

    Args:
        length: words per text: shorter ones are padded with index 0 at their start.
        vocabulary: the number of words, the most frequent ones (all, if there are fewer).
        validation: the number of validation articles.
        seed: which articles they are.
        keep: the end of longer texts that is kept, ``"start"`` or ``"end"`` (as Keras's ``pad_sequences`` does).
        headers: leave the headers in.
        folder: the folder of data sets; by default ``CALIBAYES_DATA`` or the user's cache.
    """
    positive_integer("length", length)
    positive_integer("vocabulary", vocabulary)
    if non_negative_integer("validation", validation) >= ARTICLES["train"]:
        raise InvalidArgumentError(
            f"Expected `validation` to leave some of the {ARTICLES['train']:,} training articles, but got {validation}."
        )
    root = newsgroups_folder(folder)
    classes, train, train_labels = _articles(root, "train", headers)
    others, test, test_labels = _articles(root, "test", headers)
    if classes != others:
        odd = sorted(set(classes) ^ set(others))[0]
        raise DataError(f"The training and test parts of {str(root)!r} must have the same groups, but {odd!r} is in only one.")
    train_texts, test_texts = ([words(text) for text in part] for part in (train, test))
    order = torch.randperm(len(train_texts), generator=generator_for(torch.device("cpu"), seed, "newsgroups"))
    held_out, learnt = order[:validation], order[validation:]
    listed = frequent_words((train_texts[index] for index in learnt.tolist()), vocabulary)
    x, y = sequences(train_texts, listed, length, keep), torch.tensor(train_labels)
    return Texts(
        train=(x[learnt], y[learnt]),
        validation=(x[held_out], y[held_out]),
        test=(sequences(test_texts, listed, length, keep), torch.tensor(test_labels)),
        classes=classes,
        vocabulary=listed,
        embeddings=glove(listed, folder),
    )


def newsgroups_articles(part: Literal["train", "test"], *, headers: bool = False, folder: str | Path | None = None) -> Articles:
    """Load the articles of one official part of 20 Newsgroups as strings, group by group.

    Args:
        part: ``"train"`` (11,314 articles) or ``"test"`` (7,532).
        headers: leave the headers in, as in `newsgroups`.
        folder: the folder of data sets; by default ``CALIBAYES_DATA`` or the user's cache.
    """
    if part not in ARTICLES:
        raise InvalidArgumentError(f"Expected `part` to be 'train' or 'test', but got {part!r}.")
    classes, texts, labels = _articles(newsgroups_folder(folder), part, headers)
    return Articles([text.decode("latin-1") for text in texts], torch.tensor(labels), classes)


def _articles(root: Path, part: Literal["train", "test"], headers: bool) -> tuple[tuple[str, ...], list[bytes], list[int]]:
    """Return the groups, and the text and the group of every article of a part."""
    place = required(root / f"20news-bydate-{part}", "newsgroups", "20 Newsgroups")
    groups = [group for group in visible(place) if group.is_dir()]
    texts, labels = [], []
    for label, group in enumerate(groups):
        for path in visible(group):
            text = path.read_bytes()
            texts.append(text if headers else _HEADERS.sub(b"", text))
            labels.append(label)
    if len(texts) != ARTICLES[part]:
        raise DataError(
            f"Expected {ARTICLES[part]:,} articles in {str(place)!r}, but found {len(texts):,}. "
            "Get them again: remove that folder, then `calibayes data get newsgroups`."
        )
    return tuple(group.name for group in groups), texts, labels
