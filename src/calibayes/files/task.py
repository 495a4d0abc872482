"""A file as a task to compare methods on."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from calibayes.data.splits import Splits
from calibayes.errors import DataError
from calibayes.files.image_coding import ImageCoding
from calibayes.files.prepare import Prepared, prepare
from calibayes.files.read_rows import read_rows
from calibayes.files.settings import DataSettings
from calibayes.files.split import labels_of, parts_of
from calibayes.files.table_coding import TableCoding
from calibayes.files.text_coding import text_words
from calibayes.recipes.compare import PlainInputs, Settings, Task
from calibayes.tables import RowBlock

__all__ = ["file_task"]

_STEPS = 1500
_MOST_EPOCHS = 60


def file_task(
    path: str | Path, data: DataSettings, settings: Settings, *, epochs: int | None = None
) -> tuple[Task, Settings, tuple[str, ...]]:
    """Return a file as a `Task`, the settings of a comparison for its number of examples, and notes for the user.

    Args:
        path: a table in a file, or a folder with a folder for each class.
        data: the roles of the columns, and everything else about the data.
        settings: of the comparison; its numbers of examples are upper bounds for ``--quick``, and otherwise the file decides.
        epochs: passes over the training examples; by default enough even for the smallest files.
    """
    most = (settings.train, settings.validation, settings.test) if settings.is_quick else None
    key = (str(Path(path).absolute()), data, most, _state(Path(path)))
    prepared = _prepared(*key)
    splits = prepared.splits
    train, validation, test = (len(part[1]) for part in (splits.train, splits.validation, splits.test))
    enough = min(_MOST_EPOCHS, math.ceil(_STEPS * settings.batch_size / train))
    sized = replace(settings, train=train, validation=validation, test=test, epochs=epochs or max(settings.epochs, enough))
    task = Task(
        name=Path(path).stem,
        title=f"{Path(path).name}, {len(splits.classes)} classes of {prepared.target!r}",
        examples=prepared.examples,
        # Functions that worker processes can unpickle, and that read the file again there.
        load=partial(_splits, key),
        network=partial(_network, key),
        plain_inputs=None if isinstance(prepared.coding, ImageCoding) else partial(_plain_inputs, key),
    )
    return task, sized, prepared.notes


def _splits(key: tuple[Any, ...], train: int, validation: int, test: int) -> Splits:
    return _prepared(*key).splits


def _network(key: tuple[Any, ...]) -> nn.Module:
    return _prepared(*key).network()


def _plain_inputs(key: tuple[Any, ...], train: int, validation: int, test: int) -> PlainInputs:
    return _read_plain(*key)


@lru_cache(maxsize=1)
def _read_plain(path: str, data: DataSettings, most: tuple[int, int, int] | None, state: tuple[int, ...]) -> PlainInputs:
    """Read the same rows again, for scikit-learn: numbers with NaN and codes of categories, or words."""
    prepared = _prepared(path, data, most, state)
    rows, _ = read_rows(Path(path), data, max_rows=data.max_rows, seed=data.seed)
    labels = labels_of(rows, prepared.target, data.drop_rare)
    rows = rows.take(labels.rows)
    places = list(parts_of(labels.codes, data.validation, data.test, data.seed))
    if most is not None:
        places = [part[:count] for part, count in zip(places, most, strict=True)]
    splits = (prepared.splits.train, prepared.splits.validation, prepared.splits.test)
    for part, split in zip(places, splits, strict=True):
        if not np.array_equal(labels.codes[part], split[1].numpy()):
            raise DataError(f"{path} has changed while it was read. Run the command again.")
    coding = prepared.coding
    if isinstance(coding, TableCoding):
        raw = replace(coding, raw=True)
        first, second, third = (raw.encode(rows.take(part)).numpy() for part in places)
        categories = tuple(place for place, _ in raw.categories)
        return PlainInputs(kind="table", train=first, validation=second, test=third, categorical=categories)
    one, two, three = (_words(rows.take(part), coding.needs) for part in places)
    return PlainInputs(kind="texts", train=one, validation=two, test=three)


def _words(rows: RowBlock, columns: tuple[str, ...]) -> list[list[str]]:
    cells = [rows.table.column(name).to_pylist() for name in columns]
    return [text_words("\n".join(part or "" for part in row)) for row in zip(*cells, strict=True)]


def _state(path: Path) -> tuple[int, ...]:
    """Return what changes when a file, or one in a folder, is written: their number, bytes and latest time."""
    there = [each.stat() for each in (path, *(path.rglob("*") if path.is_dir() else ())) if each.exists()]
    return len(there), sum(each.st_size for each in there), max((each.st_mtime_ns for each in there), default=0)


@lru_cache(maxsize=1)
def _prepared(path: str, data: DataSettings, most: tuple[int, int, int] | None, state: tuple[int, ...]) -> Prepared:
    """Prepare a file, and again only if its ``state`` has changed."""
    return prepare(Path(path), data, most)
