"""A file as a task to compare methods on."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from torch import nn

from calibayes.data.splits import Splits
from calibayes.files.prepare import Prepared, prepare
from calibayes.files.settings import DataSettings
from calibayes.recipes.compare import Settings, Task

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
    )
    return task, sized, prepared.notes


def _splits(key: tuple[Any, ...], train: int, validation: int, test: int) -> Splits:
    return _prepared(*key).splits


def _network(key: tuple[Any, ...]) -> nn.Module:
    return _prepared(*key).network()


def _state(path: Path) -> tuple[int, ...]:
    """Return what changes when a file, or one in a folder, is written: their number, bytes and latest time."""
    there = [each.stat() for each in (path, *(path.rglob("*") if path.is_dir() else ())) if each.exists()]
    return len(there), sum(each.st_size for each in there), max((each.st_mtime_ns for each in there), default=0)


@lru_cache(maxsize=1)
def _prepared(path: str, data: DataSettings, most: tuple[int, int, int] | None, state: tuple[int, ...]) -> Prepared:
    """Prepare a file, and again only if its ``state`` has changed."""
    return prepare(Path(path), data, most)
