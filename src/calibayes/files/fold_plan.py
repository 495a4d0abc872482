"""Which rows of a file train, which are held out, and which are kept for the final scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from calibayes.crossfit import Fold, are_copies, copies_of_rows, forward_folds, stratified_folds
from calibayes.errors import DataError
from calibayes.files.labelled_rows import LabelledRows
from calibayes.files.settings import TrainSettings
from calibayes.files.split import parts_of
from calibayes.tables import RowBlock
from calibayes.tables.dates import date_parts, looks_like_dates
from calibayes.tables.numbers import parse_numbers
from calibayes.wording import counted, shown

__all__ = ["FoldPlan", "RowLinks", "fold_plan", "row_links"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class FoldPlan(NamedTuple):
    """The rows of each member.

    Attributes:
        folds: the rows to train each member on, and those that it is held out for.
        test: rows that have no part in training; empty unless the file is split once.
        final_folds: with times, those of the members in the end, which train on all rows.
        notes: for the user.
        groups: how many groups of rows there are that belong together; None if every row is by itself.
    """

    folds: Sequence[Fold]
    test: Ints
    final_folds: Sequence[Fold] | None
    notes: tuple[str, ...]
    groups: int | None = None


class RowLinks(NamedTuple):
    """Which rows belong together, and when they were.

    Attributes:
        own: the groups that the user named, or None.
        groups: these and copies of rows together; None if every row is by itself.
        times: of the rows, or None.
        several: how many rows have the same inputs as another one.
        together: whether these are copies.
    """

    own: Ints | None
    groups: Ints | None
    times: Floats | None
    several: int
    together: bool


def row_links(found: LabelledRows, inputs: npt.NDArray[np.generic], settings: TrainSettings) -> RowLinks:
    """Return which rows of a file belong together: those of one group, and copies."""
    times = None if settings.time is None else _times(found.rows, settings.time)
    own = None if settings.group is None else _codes(found.rows, settings.group)
    copies = copies_of_rows(inputs)
    several = len(copies) - len(np.unique(copies))
    together = bool(several) and are_copies(copies, found.labels.codes)
    groups = _joined(own, copies) if together and own is not None else copies if together else own
    return RowLinks(own, groups, times, several, together)


def fold_plan(found: LabelledRows, inputs: npt.NDArray[np.generic], settings: TrainSettings) -> FoldPlan:
    """Cut the rows of a file into folds, or split it once.

    Copies of a row stay together, and so do rows of one ``group``. With a ``time`` no row is predicted by a member that has
    seen later ones.

    Args:
        found: the rows.
        inputs: of all of them.
        settings: of the training.
    """
    labels, seed = found.labels.codes, settings.seed % 2**32
    own, groups, times, several, together = row_links(found, inputs, settings)
    number = None if groups is None else len(np.unique(groups))
    count = min(settings.folds, len(labels))
    if count == 1:
        return _one_split(labels, settings, groups, times)._replace(groups=number)
    notes = [_about_copies(several, together)] if several else []
    try:
        ordinary = stratified_folds(labels, count, seed=seed, groups=groups)
    except DataError:
        if own is not None:
            raise
        notes, ordinary = [_about_copies(several, False)], stratified_folds(labels, count, seed=seed)  # a class of copies
    if times is None:
        return FoldPlan(ordinary, np.empty(0, np.int64), None, tuple(notes), number)
    forward = _after(forward_folds(labels, count, time=times), own)
    return FoldPlan(forward, np.empty(0, np.int64), ordinary, tuple(notes), number)


def _about_copies(several: int, together: bool) -> str:
    """Say where rows are that have the same inputs as another one."""
    if together:
        return f"{counted(several, 'row')} like another one: kept in one fold with it."
    return (
        f"{counted(several, 'row')} with the same inputs as another one, which may be in another fold. If they are copies, "
        "remove them from the file: the score is optimistic on rows that also occur in the training data."
    )


def _one_split(labels: Ints, settings: TrainSettings, groups: Ints | None, times: Floats | None) -> FoldPlan:
    """Return one fold, and test rows: the last ones by time, or drawn by the seed."""
    if times is not None:
        order = np.argsort(times, kind="stable")
        ends = [round((1 - settings.test - settings.validation) * len(order)), round((1 - settings.test) * len(order))]
        ends = [int(np.searchsorted(times[order], times[order[max(end, 1) - 1]], side="right")) for end in ends]
        train, validation, test = (np.sort(part) for part in np.split(order, ends))
        if groups is not None:
            train = train[~np.isin(groups[train], groups[np.concatenate([validation, test])])]
    elif groups is not None:
        rest, test = stratified_folds(labels, _parts(settings.test), seed=settings.seed % 2**32, groups=groups)[0]
        share = settings.validation / (1 - settings.test)
        inner = stratified_folds(labels[rest], _parts(share), seed=settings.seed % 2**32, groups=groups[rest])[0]
        train, validation = rest[inner.train], rest[inner.held_out]
    else:
        train, validation, test = parts_of(labels, settings.validation, settings.test, settings.seed)
    missing = np.setdiff1d(labels, labels[train])
    if not (len(train) and len(validation) and len(test)) or len(missing):
        raise DataError(
            "One split leaves a part empty, or a class without a row to train on. Use several --folds, or leave --group and "
            "--time out."
        )
    return FoldPlan([Fold(train, validation)], test, None, ())


def _parts(share: float) -> int:
    return max(2, round(1 / share))


def _after(folds: Sequence[Fold], groups: Ints | None) -> list[Fold]:
    """Take the rows of the held-out groups out of the training rows before them."""
    if groups is None:
        return list(folds)
    return [Fold(train[~np.isin(groups[train], groups[held_out])], held_out) for train, held_out in folds]


def _codes(rows: RowBlock, name: str) -> Ints:
    """Return a number for each value of a column; rows without one are groups of their own."""
    coded = rows.cells(name).dictionary_encode()
    known: Ints = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    alone = known < 0
    known[alone] = len(coded.dictionary) + np.arange(int(alone.sum()))
    return known


def _times(rows: RowBlock, name: str) -> Floats:
    """Return a column as numbers, or as days since 1970; every row must have one."""
    cells = rows.cells(name)
    parsed = parse_numbers([cells], rows.source.options.decimal)
    if parsed.good.all():
        values = parsed.values[:, 0]
    elif looks_like_dates(cells, rows.source.options.date_format).all():
        values = date_parts(rows, name)[:, 0]
    else:
        row = int(np.argmin(parsed.good[:, 0] | looks_like_dates(cells, rows.source.options.date_format)))
        what = (
            f"{shown(cells[row].as_py())} is neither a date nor a number. Write dates like 2024-12-31, or pass --date-format."
        )
        raise rows.problem(what, row, name)
    if np.isnan(values).any():
        raise rows.problem("there is no time, which --time needs in every row.", int(np.argmax(np.isnan(values))), name)
    return values


def _joined(first: Ints, second: Ints) -> Ints:
    """Return groups that keep together what either of two keeps together."""
    left, right = (np.unique(each, return_inverse=True)[1] for each in (first, second))
    size = int(left.max()) + 1
    nodes = size + int(right.max()) + 1
    graph = coo_array((np.ones(len(left), dtype=np.int8), (left, size + right)), shape=(nodes, nodes))
    joined: Ints = connected_components(graph, directed=False)[1].astype(np.int64)[left]
    return joined
