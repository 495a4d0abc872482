"""Read a user's file, check the columns that were named, and find its classes."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibayes.data.predictions.find_columns import LABEL_NAMES
from calibayes.errors import InvalidArgumentError
from calibayes.files.read_rows import LABEL, TEXT, read_rows
from calibayes.files.settings import DataSettings
from calibayes.files.split import SplitLabels, labels_of
from calibayes.files.table_coding import has_inputs
from calibayes.tables import RowBlock
from calibayes.tables.formats import file_problem
from calibayes.wording import listed, shown

__all__ = ["LabelledRows", "read_labelled"]

_OF_IMAGES = ("image_size", "network")
_TWO_WORDS = r"[^\s]\s+[^\s]"


class LabelledRows(NamedTuple):
    """The rows of a file that have a class."""

    rows: RowBlock
    labels: SplitLabels
    settings: DataSettings  # with what a folder says by itself
    target: str
    images: bool
    notes: list[str]

    def take(self, places: npt.NDArray[np.int64]) -> LabelledRows:
        """Return some of the rows; the classes stay."""
        labels = self.labels._replace(rows=self.labels.rows[places], codes=self.labels.codes[places])
        return self._replace(rows=self.rows.take(places), labels=labels)


def read_labelled(path: Path, settings: DataSettings, group: str | None = None, time: str | None = None) -> LabelledRows:
    """Read a file, check the columns that were named, and find its classes."""
    folder = path.is_dir()
    if folder:
        settings = _for_folder(settings)
    rows, total = read_rows(path, settings, max_rows=settings.max_rows, seed=settings.seed)
    names = rows.table.column_names
    settings = replace(settings, text=(TEXT,)) if folder and TEXT in names else settings
    found = [] if settings.target is not None else _likely_targets(names, settings, group, time)
    if len(found) > 1:
        which = " or ".join(map(shown, found))
        raise InvalidArgumentError(f"Expected --target to name the column of the classes: is it {which}?")
    if len(found) == 1:
        settings = replace(settings, target=found[0])
    target = _check_columns(names, path, settings, group, time)
    taken = {target, group, time, *settings.ignore, *settings.categorical}
    texts = () if folder or settings.text else _only_texts(rows, settings, taken)
    settings = replace(settings, text=texts or settings.text)
    images = folder and not settings.text
    _check_effects(settings, images=images)
    labels = labels_of(rows, target, settings.drop_rare)
    drawn = [f"{len(rows.rows):,} of {total:,} rows, drawn by seed {settings.seed}."] if len(rows.rows) < total else []
    detected = [f"Learning to predict the column {shown(target)}; to predict another, use --target."] if found else []
    detected += [f"Column {shown(name)} is taken for texts to classify by." for name in texts]
    return LabelledRows(rows.take(labels.rows), labels, settings, target, images, [*detected, *labels.notes, *drawn])


def _likely_targets(names: list[str], settings: DataSettings, group: str | None, time: str | None) -> list[str]:
    """Return the columns that are called like one of classes, and have no other purpose."""
    taken = {*settings.text, *settings.ignore, *settings.categorical, group, time}
    return [name for name in names if name.strip().lower() in LABEL_NAMES and name not in taken]


def _only_texts(rows: RowBlock, settings: DataSettings, taken: set[str | None]) -> tuple[str, ...]:
    """Return the one column of texts if there is nothing else to learn from."""
    if settings.categorical:
        return ()
    names = [name for name in rows.table.column_names if name not in taken]
    texts = tuple(name for name in names if _holds_texts(rows.cells(name)))
    others = [name for name in rows.table.column_names if name in taken or name in texts]
    return texts if len(texts) == 1 and not has_inputs(rows, settings, others) else ()


def _holds_texts(cells: Any) -> bool:
    """Return True if most cells have several words, and most differ."""
    from pyarrow import compute

    several = compute.sum(compute.match_substring_regex(cells, _TWO_WORDS)).as_py() or 0
    return bool(2 * several > len(cells) and 2 * len(cells.unique()) > len(cells))


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


def _check_columns(names: list[str], path: Path, settings: DataSettings, group: str | None, time: str | None) -> str:
    """Return the target; raise unless all named columns are there, each for one purpose.

    A column of times may be ignored otherwise, or be read as categories.
    """
    if settings.target is None:
        raise InvalidArgumentError(f"Expected --target to name the column of the classes. The columns are {listed(names)}.")
    given = {"target": (settings.target,)} | {name: getattr(settings, name) for name in ("text", "ignore", "categorical")}
    given |= {"group": () if group is None else (group,), "time": () if time is None else (time,)}
    purpose: dict[str, str] = {}
    for flag, columns in given.items():
        for name in columns:
            if name not in names:
                near = get_close_matches(name, names, n=1)
                hint = f"Did you mean {shown(near[0])}?" if near else f"The columns are {listed(names)}."
                raise file_problem(path, f"there is no column {shown(name)} (--{flag}). {hint}")
            if flag == "time" and name not in (settings.target, group):
                continue
            if purpose.setdefault(name, flag) != flag:
                raise InvalidArgumentError(f"Expected {name!r} in one of --{purpose[name]} and --{flag}, but got it in both.")
    return settings.target
