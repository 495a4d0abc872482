"""Check that several files hold predictions for the same examples, and bring them into the same order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibayes.data.predictions.classes import match
from calibayes.data.predictions.column_values import Ints
from calibayes.data.predictions.prediction_table import PredictionTable
from calibayes.errors import PredictionFileError
from calibayes.tables.formats import file_problem
from calibayes.wording import counted, listed, shown, shown_path

__all__ = ["align"]


def align(tables: Sequence[PredictionTable]) -> list[PredictionTable]:
    """Return the tables with their classes and examples in the order of the first, under different names.

    Files can be compared only on the same examples, with the same labels. Columns in another order are put in the order
    of the first file. With ids (all files or none), rows are joined by them; without, row ``i`` of one file is row ``i``
    of the others. Weights that one file has are used for all. Files of the same name are called by their folder too.

    Args:
        tables: from `read_predictions`, one for each file.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from calibayes.data.predictions import read_predictions
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.csv").write_text("label,p_cat,p_dog\\ncat,0.9,0.1\\n")
        >>> _ = (folder / "b.csv").write_text("label,p_dog,p_cat\\ncat,0.2,0.8\\n")
        >>> a, b = align([read_predictions(folder / "a.csv"), read_predictions(folder / "b.csv")])
        >>> b.class_names, b.probs.tolist()
        (('cat', 'dog'), [[0.8, 0.2]])
    """
    if not tables:
        return []
    first = tables[0]
    aligned = [first, *(_rows(first, _classes(first, table)) for table in tables[1:])]
    weighted = [table for table in aligned if table.weights is not None]
    for table in weighted[1:]:
        differ = table.weights != weighted[0].weights
        if np.any(differ):
            what = f"the weight is not the same as in {shown_path(weighted[0].path)}. The examples must have the same weights."
            raise _problem(table.path, what, _row(first, int(np.argmax(differ))))
    shared = weighted[0].weights if weighted else None
    names = _names(aligned)
    return [replace(table, name=name, weights=shared) for name, table in zip(names, aligned, strict=True)]


def _classes(first: PredictionTable, table: PredictionTable) -> PredictionTable:
    """Return ``table`` with its classes in the order of ``first``."""
    places = match(table.class_names, first.class_names)
    numbered = tuple(str(place) for place in range(first.classes))
    if table.classes == first.classes and (places < 0).any() and numbered in (table.class_names, first.class_names):
        # A file that only numbers its classes has them in the order of the others.
        places = np.arange(first.classes)
    if table.classes != first.classes or (places < 0).any() or len(set(places.tolist())) < first.classes:
        own = [name for name, place in zip(table.class_names, places, strict=True) if place < 0]
        what = f"the classes are not those of {shown_path(first.path)}: {listed(own or table.class_names)} "
        what += f"{'is' if len(own) == 1 else 'are'} not among" if own else "against"
        what += f" {listed(first.class_names)}. "
        raise _problem(table.path, what + "Compare files with the same classes.")
    order = np.argsort(places)
    return replace(
        table,
        probs=table.probs[:, order],
        logits=None if table.logits is None else table.logits[:, order],
        targets=places[table.targets],
        class_names=first.class_names,
    )


def _rows(first: PredictionTable, table: PredictionTable) -> PredictionTable:
    """Return ``table`` with its examples in the order of ``first``."""
    if (first.ids is None) != (table.ids is None):
        with_ids, without = (first, table) if table.ids is None else (table, first)
        what = f"no ids were read, but {shown_path(with_ids.path)} has them. Name the id column of both: --id."
        raise _problem(without.path, what)
    if first.ids is not None and table.ids is not None:
        order = _join(first.ids, table.ids, first.path, table.path)
        table = replace(
            table,
            probs=table.probs[order],
            logits=None if table.logits is None else table.logits[order],
            targets=table.targets[order],
            weights=None if table.weights is None else table.weights[order],
            ids=first.ids,
        )
    elif first.n != table.n:
        what = f"there are {counted(table.n, 'example')}, but {first.n:,} in {shown_path(first.path)}. "
        raise _problem(table.path, what + "Compare predictions for the same examples, or join them by a column: --id.")
    differ = first.targets != table.targets
    if differ.any():
        row = int(np.argmax(differ))
        here, there = (shown(first.class_names[one.targets[row]]) for one in (table, first))
        what = f"the label is {here}, but {there} in {shown_path(first.path)}. "
        what += "Compare predictions for the same examples in the same order" + ("." if first.ids else ", or join them: --id.")
        raise _problem(table.path, what, _row(first, row))
    return table


def _join(ids: Sequence[str], others: Sequence[str], path: Path, other_path: Path) -> Ints:
    """Return the place of each id of one file in the other."""
    places = {name: place for place, name in enumerate(others)}
    order = np.array([places.get(name, -1) for name in ids], dtype=np.int64)
    if (order < 0).any():
        row = int(np.argmax(order < 0))
        what = f"the id {shown(ids[row])} of {shown_path(path)} (row {row + 1}) is not there. "
        raise _problem(other_path, what + "Compare predictions for the same examples.")
    if len(others) > len(ids):
        known = set(ids)
        row, name = next((row, name) for row, name in enumerate(others) if name not in known)
        what = f"the id {shown(name)} is not in {shown_path(path)}. Compare predictions for the same examples."
        raise _problem(other_path, what, f"row {row + 1}")
    return order


def _problem(path: Path, what: str, where: str = "") -> PredictionFileError:
    return PredictionFileError(str(file_problem(path, what, where)))


def _row(first: PredictionTable, row: int) -> str:
    return f"row {row + 1}" if first.ids is None else f"id {shown(first.ids[row])}"


def _names(tables: Sequence[PredictionTable]) -> list[str]:
    """Return a different name for each table: with its folder, and then a number, where the file's alone is not enough."""
    names = [table.name for table in tables]
    counts = Counter(names)
    names = [
        f"{table.path.parent.name}/{name}" if counts[name] > 1 and table.path.parent.name else name
        for name, table in zip(names, tables, strict=True)
    ]
    different: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in different:
            number += 1
            candidate = f"{name} ({number})"
        different.append(candidate)
    return different
