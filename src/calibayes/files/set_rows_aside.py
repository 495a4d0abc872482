"""Choose the rows of a file that nothing in training sees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibayes.crossfit import MOST_SET_ASIDE, rows_to_set_aside
from calibayes.errors import DataError
from calibayes.files.fold_plan import RowLinks, row_links
from calibayes.files.guarantee_settings import share_to_set_aside
from calibayes.files.labelled_rows import LabelledRows
from calibayes.files.prepare import encode
from calibayes.files.settings import TrainSettings
from calibayes.wording import counted, shown

__all__ = ["SplitForCalibration", "set_rows_aside"]

Ints = npt.NDArray[np.int64]


class SplitForCalibration(NamedTuple):
    """The rows to train on, with notes for the user on the others, and those that were set aside; None if not asked for."""

    training: LabelledRows
    aside: LabelledRows | None


def set_rows_aside(found: LabelledRows, settings: TrainSettings) -> SplitForCalibration:
    """Set a share of the rows aside, if the settings ask for it.

    Rows of one group and copies of a row are never on both sides. With times, the latest rows are set aside, and earlier rows
    that belong to them are left out.
    """
    share = share_to_set_aside(settings)
    if share is None:
        return SplitForCalibration(found, None)
    every = np.arange(len(found.labels.codes))
    inputs = encode(found, every, () if settings.group is None else (settings.group,)).inputs.numpy()
    links = row_links(found, inputs, settings)
    aside = _latest(links, share) if links.times is not None else _drawn(found, links, share, settings.seed)
    training = np.setdiff1d(every, aside)
    if links.times is not None and links.groups is not None:
        training = training[~np.isin(links.groups[training], links.groups[aside])]
    missing = np.setdiff1d(found.labels.codes, found.labels.codes[training])
    if len(missing):
        raise DataError(
            f"With {counted(len(aside), 'row')} set aside, no row of class {shown(found.labels.classes[missing[0]])} is left "
            "to train on. Set fewer aside (--set-aside), or add rows."
        )
    notes = [
        *found.notes,
        f"{counted(len(aside), 'row')} set aside, which nothing in training sees, to calibrate sets and thresholds.",
    ]
    dropped = len(every) - len(aside) - len(training)
    if dropped:
        notes.append(f"{counted(dropped, 'earlier row')} of the same groups, or like them: left out.")
    return SplitForCalibration(found.take(training)._replace(notes=notes), found.take(aside))


def _drawn(found: LabelledRows, links: RowLinks, share: float, seed: int) -> Ints:
    labels = found.labels.codes
    try:
        return rows_to_set_aside(labels, share, seed=seed, groups=links.groups)
    except DataError:
        if links.own is not None or links.groups is None:
            raise
        return rows_to_set_aside(labels, share, seed=seed)  # a class of copies


def _latest(links: RowLinks, share: float) -> Ints:
    assert links.times is not None
    order = np.argsort(links.times, kind="stable")
    times = links.times[order]
    wanted = min(max(1, round(share * len(order))), MOST_SET_ASIDE)
    # Rows of one time stay together.
    begin = int(np.searchsorted(times, times[len(order) - wanted - 1], side="right"))
    if begin == len(order):
        raise DataError(
            f"The latest rows cannot be set aside: {counted(wanted + 1, 'row')} or more have the last time. Set more aside "
            "(--set-aside), or leave --time out."
        )
    return np.sort(order[begin:])
