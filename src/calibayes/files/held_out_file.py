"""Read a file of other rows to measure a model on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibayes.files.prepare import EncodedRows
from calibayes.files.read_rows import read_rows
from calibayes.files.settings import TrainSettings
from calibayes.files.split import shared
from calibayes.tables import RowBlock
from calibayes.tables.formats import file_problem
from calibayes.tables.numbers import label_key
from calibayes.wording import counted, listed, shown

__all__ = ["RowsToTest", "read_test_rows"]


class RowsToTest(NamedTuple):
    """The rows of a test file.

    Attributes:
        rows: those with a class that the model knows.
        labels: their classes.
        notes: for the user.
    """

    rows: RowBlock
    labels: npt.NDArray[np.int64]
    notes: tuple[str, ...]


def read_test_rows(path: Path, data: EncodedRows, settings: TrainSettings) -> RowsToTest:
    """Read the rows of a test file, and check that a model of ``data`` can predict them.

    Nothing here needs a trained model, so a file that does not fit is reported before the training rather than after it.

    Args:
        path: the test file.
        data: the rows to train on.
        settings: of the training.
    """
    rows, _ = read_rows(path, settings)
    names = rows.table.column_names
    if data.target not in names:
        raise file_problem(path, f"there is no column {shown(data.target)} of the classes. The columns are {listed(names)}.")
    missing = [name for name in data.coding.needs if name not in names]
    if missing:
        what = f"the training data have columns that are not there: {listed(missing)}. The columns are {listed(names)}."
        raise file_problem(path, what)
    places = {label_key(name): place for place, name in enumerate(data.classes)}
    texts = rows.cells(data.target).to_pylist()
    codes = np.array([-1 if text is None else places.get(label_key(text), -1) for text in texts], dtype=np.int64)
    known = np.flatnonzero(codes >= 0)
    if not len(known):
        raise file_problem(path, f"no row has one of the classes {listed(data.classes)} in {shown(data.target)}.")
    unknown, notes, kept = len(codes) - len(known), list[str](), rows.take(known)
    if unknown:
        notes.append(f"{counted(unknown, 'test row')} without a class that the model knows: left out.")
    copies = shared(data.inputs, data.coding.encode(kept))
    if copies:
        notes.append(
            f"{copies:,} of {len(known):,} test {data.examples} have the same inputs as some to train on. If they are copies, "
            "remove them from one of the files: the score is optimistic on rows that also occur in the training data."
        )
    return RowsToTest(kept, codes[known], tuple(notes))
