"""A file as something that the four schemes can be compared on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

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
    """A file as a `Task`, the settings of a comparison for as many examples as it has, and what the user should know.

    Args:
        path: a table in a file, or a folder with a folder for each class.
        data: what is taken for what.
        settings: of the comparison; its numbers of examples are upper bounds for ``--quick``, and otherwise the file decides.
        epochs: passes over the training examples; by default enough for the smallest of files to be learnt.
    """
    most = (settings.train, settings.validation, settings.test) if settings.is_quick else None
    source = FileParts(str(Path(path).absolute()), data, most, _state(Path(path)))
    prepared = _prepared(source)
    train, validation, test = (
        len(part[1]) for part in (prepared.splits.train, prepared.splits.validation, prepared.splits.test)
    )
    enough = min(_MOST_EPOCHS, math.ceil(_STEPS * settings.batch_size / train))
    sized = replace(settings, train=train, validation=validation, test=test, epochs=epochs or max(settings.epochs, enough))
    name = Path(path).stem
    task = Task(
        name=name,
        title=f"{Path(path).name}, {len(prepared.splits.classes)} classes of {prepared.target!r}",
        examples=prepared.examples,
        load=source,
        network=FileNetwork(source),
    )
    return task, sized, prepared.notes


@dataclass(frozen=True)
class FileParts:
    """The parts of a file, as worker processes read it again.

    Attributes:
        path: of the file.
        data: what is taken for what.
        most: examples of each part, at most.
        state: of the file when the task was made: one that was written anew is read anew.
    """

    path: str
    data: DataSettings
    most: tuple[int, int, int] | None
    state: tuple[int, ...]

    def __call__(self, train: int, validation: int, test: int) -> Splits:
        """The three parts; their sizes are the file's."""
        return _prepared(self).splits


@dataclass(frozen=True)
class FileNetwork:
    """A new network for a file.

    Attributes:
        source: the file.
    """

    source: FileParts

    def __call__(self) -> nn.Module:
        """The network."""
        return _prepared(self.source).network()


def _state(path: Path) -> tuple[int, ...]:
    """What changes when a file, or one in a folder, is written: how many there are, their bytes and the latest time."""
    there = [each.stat() for each in (path, *(path.rglob("*") if path.is_dir() else ())) if each.exists()]
    return len(there), sum(each.st_size for each in there), max((each.st_mtime_ns for each in there), default=0)


@lru_cache(maxsize=1)
def _prepared(source: FileParts) -> Prepared:
    return prepare(Path(source.path), source.data, source.most)
