"""Reads confidence and correctness from a file: two columns, as users of language models have them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibayes.data.predictions.column_names import find_name
from calibayes.data.predictions.column_values import TextColumn, numeric_columns, read_columns
from calibayes.data.predictions.find_columns import DECISIONS, LABEL_NAMES, NOT_SCORES
from calibayes.data.predictions.npz_arrays import NpzArrays
from calibayes.errors import DataError, InvalidArgumentError, PredictionFileError
from calibayes.tables import RowSource, TableFile, TableOptions, open_table
from calibayes.tables.formats import check_file, file_problem
from calibayes.tables.numbers import Floats, label_key
from calibayes.wording import counted, joined, shown

__all__ = ["PairTable", "has_pairs", "pair_tables", "read_pairs"]

_CONFIDENCE = ("confidence", "conf")
_CORRECT = ("correct", "is_correct", "right")
_RIGHT = {"1", "1.0", "true", "t", "yes", "y", "right", "correct"}
_WRONG = {"0", "0.0", "false", "f", "no", "n", "wrong", "incorrect"}


@dataclass(frozen=True, eq=False, kw_only=True)
class PairTable:
    """How sure a classifier was of its answers, and which were right.

    Attributes:
        name: of the classifier, from the name of the file.
        path: the file.
        confidence: float64 ``[n]``.
        correct: 0 or 1, float64 ``[n]``.
        weights: float64 ``[n]`` if a column was named for them, else None.
        columns: the names of the two columns.
    """

    name: str
    path: Path
    confidence: Floats = field(repr=False)
    correct: Floats = field(repr=False)
    weights: Floats | None = field(default=None, repr=False)
    columns: tuple[str, str]

    def describe(self) -> str:
        """What was taken for what, on one line."""
        return (
            f"{counted(len(self.correct), 'example')}; confidence from {shown(self.columns[0])}, "
            f"correctness from {shown(self.columns[1])}"
        )


def pair_tables(
    files: Sequence[Path],
    confidence: str | None,
    correct: str | None,
    others: Mapping[str, str | None],
    weights: str | None,
    options: Mapping[str, Any],
) -> list[PairTable]:
    """Read files of pairs; an empty list where the files hold probabilities of classes.

    Args:
        files: the files, for the same examples in the same order.
        confidence: the column of the confidences, if it was named.
        correct: the column of correctness, if it was named.
        others: options that mean files of probabilities, by flag, and None where they were not given.
        weights: a column of weights.
        options: how the text of a table is written.
    """
    named = confidence is not None or correct is not None
    given = [flag for flag, value in others.items() if value is not None]
    if named and given:
        raise InvalidArgumentError(f"Expected --confidence-column and --correct-column without {joined(given)}.")
    if not named and (given or not all(has_pairs(path, **options) for path in files)):
        return []
    tables = [read_pairs(path, confidence=confidence, correct=correct, weights=weights, **options) for path in files]
    for table in tables[1:]:
        if len(table.correct) != len(tables[0].correct):
            what = f"there are {counted(len(table.correct), 'example')}, but {len(tables[0].correct):,} in the first file. "
            raise PredictionFileError(str(file_problem(table.path, what + "Compare answers to the same questions, in order.")))
    names = [table.name for table in tables]
    return [
        replace(table, name=f"{table.name} ({place + 1})") if names.count(table.name) > 1 else table
        for place, table in enumerate(tables)
    ]


def has_pairs(path: str | os.PathLike[str], **options: Any) -> bool:
    """Return True if a file has a column of confidences and one of correctness, and none of labels.

    Or if it has labels, decisions and their confidences, but no probabilities of classes.
    """
    try:
        source = _opened(Path(path), TableOptions(**options))
        names = {name.strip().lower() for name in source.names}
        if names.isdisjoint(_CONFIDENCE):
            return False
        return not names.isdisjoint(_CORRECT) if names.isdisjoint(LABEL_NAMES) else _label_and_decision(source) is not None
    except DataError:
        return False  # `read_predictions` will say what is wrong


def _label_and_decision(source: TableFile | NpzArrays) -> tuple[str, str] | None:
    """Return the columns of true classes and of decisions, if no other column may hold probabilities."""
    by_name = {name.strip().lower(): name for name in reversed(source.names)}
    label, decision = (next((by_name[name] for name in usual if name in by_name), None) for usual in (LABEL_NAMES, DECISIONS))
    if label is None or decision is None or isinstance(source, NpzArrays):
        return None
    known = {label, decision, *(name for key, name in by_name.items() if key in NOT_SCORES)}
    return (label, decision) if numeric_columns(source) <= known else None


def read_pairs(
    path: str | os.PathLike[str],
    *,
    confidence: str | None = None,
    correct: str | None = None,
    weights: str | None = None,
    **options: Any,
) -> PairTable:
    """Read confidence and correctness from a table or an ``.npz`` file.

    Args:
        path: a file of any format of `read_predictions`.
        confidence: the column of the confidences, in 0 … 1; by default the one called ``confidence``.
        correct: the column that says which answers are right (1 and 0, true and false); by default ``correct``, or those
            whose decision is the label where the file has columns of these and none called ``correct``.
        weights: a column of weights.
        options: how the text of a table is written, as of `read_predictions`.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "answers.csv"
        >>> _ = path.write_text("question,confidence,correct\\nq1,0.9,true\\nq2,0.4,false\\n")
        >>> table = read_pairs(path)
        >>> table.confidence.tolist(), table.correct.tolist()
        ([0.9, 0.4], [1.0, 0.0])
    """
    path = Path(path)
    table_options = TableOptions(**options)
    try:
        return _read(_opened(path, table_options), confidence, correct, weights)
    except DataError as error:
        raise PredictionFileError(str(error)) from None


def _read(source: TableFile | NpzArrays, confidence: str | None, correct: str | None, weights: str | None) -> PairTable:
    r_name = _find(source, confidence, _CONFIDENCE, "--confidence-column")
    names = {name.strip().lower() for name in source.names}
    pair = _label_and_decision(source) if correct is None and names.isdisjoint(_CORRECT) else None
    c_name = _find(source, correct, _CORRECT, "--correct-column") if pair is None else pair[0]
    w_name = None if weights is None else find_name(source, weights, "--weights")
    wanted = [r_name, *([] if w_name is None else [w_name])]
    if isinstance(source, NpzArrays):
        columns = [source.numbers(name).astype(np.float64).reshape(-1) for name in wanted]
        answers = source.texts(c_name)
        for name, column in zip(wanted, columns, strict=True):
            if len(column) != len(answers.codes):
                what = f"the array {shown(name)} has {counted(len(column), 'value')}, but {shown(c_name)} has "
                raise source.problem(f"{what}{len(answers.codes):,}. Store one value for each example.")
    else:
        texts, numbers = read_columns(source, [c_name] if pair is None else list(pair), wanted)
        columns, answers = [np.ascontiguousarray(column) for column in numbers.T], texts[c_name]
    outside = ~((columns[0] >= 0) & (columns[0] <= 1))
    if outside.any():
        row = int(np.argmax(outside))
        what = f"{columns[0][row]:g} is not a confidence between 0 and 1. Divide percentages by 100."
        raise source.problem(what, row, r_name)
    path = source.path
    return PairTable(
        name=Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem,
        path=path,
        confidence=columns[0],
        correct=_correctness(source, c_name, answers) if pair is None else _agreement(answers, texts[pair[1]]),
        weights=None if w_name is None else columns[1],
        columns=(r_name, c_name if pair is None else f"{pair[0]} = {pair[1]}"),
    )


def _correctness(source: RowSource, name: str, answers: TextColumn) -> Floats:
    values = np.empty(len(answers.values))
    for code, text in enumerate(answers.values):
        word = text.strip().lower()
        if word not in _RIGHT | _WRONG:
            what = f"{shown(text)} says neither right nor wrong. Write 1 or 0, or true or false."
            raise source.problem(what, int(np.argmax(answers.codes == code)), name)
        values[code] = word in _RIGHT
    correct: Floats = values[answers.codes]
    return correct


def _agreement(labels: TextColumn, decisions: TextColumn) -> Floats:
    """1 where the decision is the label, in whatever spelling of a number or truth value."""
    first, second = (np.array([label_key(text) for text in each.values])[each.codes] for each in (labels, decisions))
    same: Floats = (first == second).astype(np.float64)
    return same


def _find(source: TableFile | NpzArrays, given: str | None, usual: tuple[str, ...], flag: str) -> str:
    by_name = {name.strip().lower(): name for name in reversed(source.names)}
    found = next((by_name[name] for name in usual if name in by_name), usual[0])
    return find_name(source, found if given is None else given, flag)


def _opened(path: Path, options: TableOptions) -> TableFile | NpzArrays:
    if path.suffix.lower() != ".npz":
        return open_table(path, options)
    check_file(path, options, also=(".npz",))
    return NpzArrays(path)
