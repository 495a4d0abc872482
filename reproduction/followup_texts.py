"""The follow-up's method on CLINC150: requests of 150 intents, with out-of-scope requests as outsiders."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from calibayes.data import Splits
from calibayes.data.data_folder import data_folder
from calibayes.data.newsgroups import newsgroups_articles, newsgroups_folder
from calibayes.data.word_indices import frequent_words, sequences, words
from calibayes.errors import MissingDataError
from calibayes.networks.text_network import TextNetwork
from calibayes.networks.word_weights import WordWeights
from calibayes.randomness import generator_for
from reproduction.followup_scores import KNOWN_SOURCE, NEW_SOURCE
from reproduction.followup_training import FollowUpData, FollowUpTraining, train_and_score_outsiders

__all__ = ["check_texts", "clinc150_file", "clinc150_followup_trial", "sentences", "text_data", "without_words"]

_LENGTH = 30  # words of a request at most
_VALIDATION_OUTSIDERS = 50  # of the 100 out-of-scope requests for validation, to train on beside the 100 for training
_SENTENCES = 1000
_DROPPED = {"20 % fewer words": 0.2, "40 % fewer words": 0.4}


def clinc150_followup_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train and test with these settings; names are those of `FollowUpTraining`."""
    chosen = FollowUpTraining.of(settings)
    data, weights = text_data(chosen.train, chosen.test, chosen.outsiders)
    return train_and_score_outsiders(chosen, data, partial(TextNetwork, weights, classes=len(data.splits.classes)))


def check_texts(settings: Mapping[str, Any]) -> None:
    """Raise if the data of a training are not on this machine."""
    clinc150_file()
    newsgroups_folder()


def clinc150_file(folder: str | Path | None = None) -> Path:
    """The file of all requests, or an error that says where to get it."""
    path = data_folder(folder) / "clinc150" / "data_full.json"
    if not path.exists():
        where = "data/data_full.json of https://github.com/clinc/oos-eval"
        raise MissingDataError(f"CLINC150 is not here: there is no {str(path)!r}. Put there {where}.")
    return path


@lru_cache(maxsize=1)
def text_data(train: int | None, test: int | None, outsiders: int | None) -> tuple[FollowUpData, WordWeights]:
    """The official parts as word indices, outsiders of two sources, requests with words missing, and how much words count.

    Outsiders to test on are the out-of-scope requests of the test part, and sentences from 20 Newsgroups, which nothing is
    trained on. The vocabulary is that of the training requests.
    """
    stored = json.loads(clinc150_file().read_text(encoding="utf-8"))
    parts = {
        name: _shuffled([(words(text.encode("latin-1", "replace")), label) for text, label in stored[name]]) for name in stored
    }
    parts |= {"train": parts["train"][:train], "val": parts["val"][:test], "test": parts["test"][:test]}
    vocabulary = frequent_words((text for text, _ in parts["train"]), 20_000)
    classes = tuple(sorted({label for _, label in stored["train"]}))

    def encoded(texts: Sequence[Sequence[str]]) -> Tensor:
        return sequences([list(dict.fromkeys(text)) for text in texts], vocabulary, _LENGTH)

    def labelled(name: str) -> tuple[Tensor, Tensor]:
        return encoded([text for text, _ in parts[name]]), torch.tensor([classes.index(label) for _, label in parts[name]])

    splits = Splits(train=labelled("train"), validation=labelled("val"), test=labelled("test"), classes=classes)
    outside = [text for text, _ in (*parts["oos_train"], *parts["oos_val"][:_VALIDATION_OUTSIDERS])]
    out_of_scope = [text for text, _ in parts["oos_test"]][:outsiders]
    x, y = splits.test
    data = FollowUpData(
        splits=splits,
        outside=encoded(outside),
        outsiders={
            KNOWN_SOURCE: encoded(out_of_scope),
            NEW_SOURCE: encoded(sentences(_SENTENCES)[:outsiders]),
        },
        shifted={name: (without_words(x, share, seed=0), y) for name, share in _DROPPED.items()},
    )
    return data, WordWeights(1 + len(vocabulary)).fit(splits.train[0])


def sentences(count: int) -> list[list[str]]:
    """Random sentences of 5 to 20 words from test articles of 20 Newsgroups."""
    articles = newsgroups_articles("test").texts
    order = torch.randperm(len(articles), generator=generator_for(torch.device("cpu"), 0, "sentences"))
    found: list[list[str]] = []
    for index in order.tolist():
        parts = [words(part.encode("latin-1", "replace")) for part in re.split(r"[.!?]\s|\n\s*\n", articles[index])]
        found += [part for part in parts if 5 <= len(part) <= 20][:1]  # one of each article
        if len(found) == count:
            break
    return found


def without_words(tokens: Tensor, share: float, *, seed: int) -> Tensor:
    """Word indices with a random share of the words replaced by padding."""
    generator = generator_for(torch.device("cpu"), seed, "words dropped")
    return tokens.masked_fill(torch.rand(tokens.shape, generator=generator) < share, 0)


def _shuffled(rows: list[tuple[list[str], str]]) -> list[tuple[list[str], str]]:
    """The rows in a random order that is always the same: in the file they come intent by intent."""
    order = torch.randperm(len(rows), generator=generator_for(torch.device("cpu"), 0, "clinc150", len(rows)))
    return [rows[index] for index in order.tolist()]
