"""Prepare a file for training: its classes, three parts of inputs, and a network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from calibayes.data.glove import glove
from calibayes.data.splits import Splits
from calibayes.errors import InvalidArgumentError
from calibayes.files.image_coding import fit_images, network_for
from calibayes.files.model import Coding
from calibayes.files.networks import NetworkPlan
from calibayes.files.read_rows import FILE, LABEL, TEXT, read_rows
from calibayes.files.settings import DataSettings
from calibayes.files.split import SplitRows, labels_of, parts_of, shared
from calibayes.files.table_coding import TableCoding, fit_table
from calibayes.files.text_coding import TextCoding, fit_text, rarity
from calibayes.networks import TextCNN
from calibayes.networks.head_dropout import HEAD_DROPOUT
from calibayes.tables import RowBlock
from calibayes.tables.formats import file_problem
from calibayes.wording import listed, shown

__all__ = ["Prepared", "prepare"]

Rows = npt.NDArray[np.int64]

_DIM = 64
_OF_IMAGES = ("image_size", "network")


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """A file, ready for training."""

    splits: Splits
    target: str  # the column of the classes
    coding: Coding
    plan: NetworkPlan
    start: Mapping[str, Tensor]  # fixed weights of the network, by name, which are not trained
    examples: str  # "rows", "texts" or "images"
    copies: int  # test examples that have the inputs of a training example
    notes: tuple[str, ...]  # for the user

    def network(self) -> nn.Module:
        """Return a new network; its initial weights are drawn from torch's global generator."""
        net = self.plan()
        net.load_state_dict({**net.state_dict(), **self.start})
        for name, weight in net.named_parameters():
            weight.requires_grad_(name not in self.start)
        return net


def prepare(path: Path, settings: DataSettings, most: tuple[int, int, int] | None = None, *, dropout: bool = False) -> Prepared:
    """Read a file, find its classes, split it by the seed, and learn from the training part how to encode all of it.

    Args:
        path: a table in a file, or a folder with a folder for each class.
        settings: the roles of the columns, and everything else about the data.
        most: the maximum numbers of training, validation and test examples.
        dropout: whether the network gets a dropout layer before its last one.
    """
    folder = path.is_dir()
    if folder:
        settings = _for_folder(settings)
    rows, total = read_rows(path, settings, max_rows=settings.max_rows, seed=settings.seed)
    names = rows.table.column_names
    settings = replace(settings, text=(TEXT,)) if folder and TEXT in names else settings
    target = _check_columns(names, path, settings)
    images = folder and not settings.text
    _check_effects(settings, images=images)
    labels = labels_of(rows, target, settings.drop_rare)
    parts = parts_of(labels.codes, settings.validation, settings.test, settings.seed)
    if most is not None:
        parts = SplitRows(*(part[:count] for part, count in zip(parts, most, strict=True)))
    own = rows.take(labels.rows)
    coding, notes = _coding(own, parts.train, settings, target, images=images)
    if len(rows.rows) < total:
        notes.insert(0, f"{len(rows.rows):,} of {total:,} rows, drawn by seed {settings.seed}.")
    first, second, third = ((coding.encode(own.take(part)), torch.from_numpy(labels.codes[part])) for part in parts)
    plan, start = _network(coding, first[0], len(labels.classes), settings)
    plan = replace(plan, dropout=HEAD_DROPOUT) if dropout else plan
    examples = {"table": "rows", "text": "texts", "images": "images"}[coding.kind]
    copies = shared(first[0], third[0])
    if copies:
        notes.append(
            f"{copies:,} of {len(third[0]):,} test {examples} have the same inputs as some to train on. If they are copies, "
            "remove them from the file: the score is optimistic on rows that also occur in the training data."
        )
    return Prepared(
        splits=Splits(train=first, validation=second, test=third, classes=labels.classes),
        target=target,
        coding=coding,
        plan=plan,
        start=start,
        examples=examples,
        copies=copies,
        notes=(*labels.notes, *notes),
    )


def _for_folder(settings: DataSettings) -> DataSettings:
    """Set the target to the folders, and raise on options that only tables have."""
    given = [f"--{name}" for name in ("text", "ignore", "categorical", "delimiter") if getattr(settings, name)]
    given += [] if settings.header else ["--no-header"]
    if settings.target not in (None, LABEL):
        given.append("--target")
    if given:
        raise InvalidArgumentError(f"Expected no {given[0]} for a folder, whose folders are the classes.")
    return replace(settings, target=LABEL)


def _check_effects(settings: DataSettings, *, images: bool) -> None:
    """Raise if something is set that would have no effect on these data."""
    given = [] if images else [(f"--{name.replace('_', '-')}", "images") for name in _OF_IMAGES if getattr(settings, name)]
    if settings.embeddings != "learned" and not settings.text:
        given.append(("--embeddings", "texts (--text)"))
    if given:
        flag, what = given[0]
        raise InvalidArgumentError(f"Expected no {flag} for data without {what}: it would have no effect.")


def _check_columns(names: list[str], path: Path, settings: DataSettings) -> str:
    """Return the target; raise unless all named columns are there, each for one purpose."""
    if settings.target is None:
        raise InvalidArgumentError(f"Expected --target to name the column of the classes. The columns are {listed(names)}.")
    given = {"target": (settings.target,)} | {name: getattr(settings, name) for name in ("text", "ignore", "categorical")}
    purpose: dict[str, str] = {}
    for flag, columns in given.items():
        for name in columns:
            if name not in names:
                near = get_close_matches(name, names, n=1)
                hint = f"Did you mean {shown(near[0])}?" if near else f"The columns are {listed(names)}."
                raise file_problem(path, f"there is no column {shown(name)} (--{flag}). {hint}")
            if purpose.setdefault(name, flag) != flag:
                raise InvalidArgumentError(f"Expected {name!r} in one of --{purpose[name]} and --{flag}, but got it in both.")
    return settings.target


def _coding(rows: RowBlock, train: Rows, settings: DataSettings, target: str, *, images: bool) -> tuple[Coding, list[str]]:
    """Return the conversion of rows to inputs, and notes for the user."""
    if images:
        return fit_images(rows.table.column(FILE).to_pylist(), settings), []
    if not settings.text:
        return fit_table(rows, train, settings, (target,))
    coding = fit_text(rows.take(train), settings, once=settings.embeddings == "learned")
    others = [name for name in rows.table.column_names if name not in (target, FILE, *settings.text, *settings.ignore)]
    return coding, [f"Only the text is read; columns not used: {listed(others)}."] if others else []


def _network(coding: Coding, train: Tensor, classes: int, settings: DataSettings) -> tuple[NetworkPlan, dict[str, Tensor]]:
    """Return the network for some inputs, and its fixed weights."""
    if isinstance(coding, TableCoding):
        return NetworkPlan("mlp", {"inputs": coding.width, "hidden": list(settings.hidden), "classes": classes}), {}
    if isinstance(coding, TextCoding):
        words = 1 + len(coding.vocabulary)
        if coding.once:
            return NetworkPlan("word-bag", {"words": words, "dim": _DIM, "classes": classes}), {"weights": rarity(train, words)}
        vectors = glove(coding.vocabulary)
        sizes = {"words": words, "dim": vectors.shape[1], "classes": classes, "pool": _pool(coding.length)}
        return NetworkPlan("text-cnn", sizes), {"embedding.weight": vectors}
    pixels = train.float() / 255
    mean, std = pixels.mean((0, 2, 3)), pixels.std((0, 2, 3)).clamp_min(1e-3)
    plan = {"channels": coding.channels, "side": coding.size, "mean": mean.tolist(), "std": std.tolist(), "classes": classes}
    return NetworkPlan(network_for(coding.size, settings), plan), {}


def _pool(length: int) -> int:
    """Return the largest pooling of the network for texts that this length allows."""
    fitting = [pool for pool in (2, 3, 4, 5) if length >= TextCNN.shortest_for(pool)]
    if not fitting:
        raise InvalidArgumentError(f"Expected `length` to be at least {TextCNN.shortest_for(2)} with GloVe, but got {length}.")
    return fitting[-1]
