"""Prepare a file for training: its classes, three parts of inputs, and a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from calibayes.crossfit import Representation
from calibayes.data.splits import Splits
from calibayes.files.image_coding import fit_images
from calibayes.files.labelled_rows import LabelledRows, read_labelled
from calibayes.files.model import Coding
from calibayes.files.read_rows import FILE
from calibayes.files.representations import representation_of
from calibayes.files.settings import DataSettings
from calibayes.files.split import SplitRows, parts_of, shared
from calibayes.files.table_coding import fit_table
from calibayes.files.text_coding import fit_text
from calibayes.tables import RowBlock
from calibayes.wording import listed

__all__ = ["EncodedRows", "Prepared", "encode", "prepare"]

Rows = npt.NDArray[np.int64]

_LONGEST_NAME = 64  # characters of a row's name
_EXAMPLES = {"table": "rows", "text": "texts", "images": "images"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """A file, ready for training."""

    splits: Splits
    target: str  # the column of the classes
    coding: Coding
    representation: Representation
    examples: str  # "rows", "texts" or "images"
    copies: int  # test examples that have the inputs of a training example
    notes: tuple[str, ...]  # for the user

    def network(self) -> nn.Module:
        """Return a new network; its initial weights are drawn from torch's global generator."""
        return self.representation.network("fnn")


def prepare(path: Path, settings: DataSettings, most: tuple[int, int, int] | None = None) -> Prepared:
    """Read a file, find its classes, split it by the seed, and learn from the training part how to encode all of it.

    Args:
        path: a table in a file, or a folder with a folder for each class.
        settings: the roles of the columns, and everything else about the data.
        most: the maximum numbers of training, validation and test examples.
    """
    found = read_labelled(path, settings)
    settings, codes, classes = found.settings, found.labels.codes, found.labels.classes
    parts = parts_of(codes, settings.validation, settings.test, settings.seed)
    if most is not None:
        parts = SplitRows(*(part[:count] for part, count in zip(parts, most, strict=True)))
    coding, notes = _coding(found.rows, parts.train, settings, (found.target,), images=found.images)
    first, second, third = ((coding.encode(found.rows.take(part)), torch.from_numpy(codes[part])) for part in parts)
    examples = _EXAMPLES[coding.kind]
    copies = shared(first[0], third[0])
    if copies:
        notes.append(
            f"{copies:,} of {len(third[0]):,} test {examples} have the same inputs as some to train on. If they are copies, "
            "remove them from the file: the score is optimistic on rows that also occur in the training data."
        )
    return Prepared(
        splits=Splits(train=first, validation=second, test=third, classes=classes),
        target=found.target,
        coding=coding,
        representation=representation_of(coding, first[0], len(classes), settings),
        examples=examples,
        copies=copies,
        notes=(*found.notes, *notes),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class EncodedRows:
    """All labelled rows of a file as inputs of networks."""

    inputs: Tensor
    targets: Tensor
    classes: tuple[str, ...]
    target: str  # the column of the classes
    coding: Coding
    examples: str  # "rows", "texts" or "images"
    notes: tuple[str, ...]  # for the user
    identifiers: tuple[str, ...] = ()  # columns that are no inputs because they number or name the rows


def encode(found: LabelledRows, learn_from: Rows, leave_out: Sequence[str] = ()) -> EncodedRows:
    """Encode all rows; quantiles, categories and vocabularies are those of some of them, whose classes have no part in it.

    Args:
        found: the rows.
        learn_from: the places of those to learn the conversion from.
        leave_out: columns that are no inputs.
    """
    coding, notes = _coding(found.rows, learn_from, found.settings, (found.target, *leave_out), images=found.images)
    return EncodedRows(
        inputs=coding.encode(found.rows),
        targets=torch.from_numpy(found.labels.codes),
        classes=found.labels.classes,
        target=found.target,
        coding=coding,
        examples=_EXAMPLES[coding.kind],
        notes=(*found.notes, *notes),
        identifiers=_identifiers(found.rows, {*coding.needs, found.target, FILE}),
    )


def _identifiers(rows: RowBlock, used: set[str]) -> tuple[str, ...]:
    """Return the columns without a part in the inputs that have another short value in every row."""
    others = {name: rows.cells(name) for name in rows.table.column_names if name not in used}
    return tuple(name for name, cells in others.items() if _are_names(cells))


def _are_names(cells: Any) -> bool:
    from pyarrow import compute

    if cells.null_count or len(cells.unique()) < len(cells):
        return False
    return bool(compute.max(compute.utf8_length(cells)).as_py() <= _LONGEST_NAME)


def _coding(
    rows: RowBlock, train: Rows, settings: DataSettings, taken: Sequence[str], *, images: bool
) -> tuple[Coding, list[str]]:
    """Return the conversion of rows to inputs, and notes for the user."""
    if images:
        return fit_images(rows.table.column(FILE).to_pylist(), settings), []
    if not settings.text:
        table, notes = fit_table(rows, train, settings, taken)
        return replace(table, raw=True), notes
    coding = fit_text(rows.take(train), settings, once=settings.embeddings == "learned")
    others = [name for name in rows.table.column_names if name not in (*taken, FILE, *settings.text, *settings.ignore)]
    return coding, [f"Only the text is read; columns not used: {listed(others)}."] if others else []
