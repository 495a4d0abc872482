"""Predict a file of any length, and write the predictions block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibayes.data.predictions.column_names import named_score
from calibayes.errors import InvalidArgumentError
from calibayes.files.model import Model
from calibayes.files.prediction_writer import prediction_writer
from calibayes.files.read_rows import FILE, LABEL, row_blocks
from calibayes.files.row_actions import RowActions
from calibayes.files.table_coding import TableCoding
from calibayes.files.table_columns import CategoryColumn
from calibayes.tables import RowBlock, TableOptions
from calibayes.tables.formats import file_problem
from calibayes.tables.numbers import label_key
from calibayes.wording import counted, listed, shown

__all__ = ["Predicted", "predict_file"]

_UNCERTAINTIES = ("confidence", "epistemic", "aleatoric")
_OUTPUTS = (LABEL, "decision", "abstain", "set", *_UNCERTAINTIES, "outsider")


class Predicted(NamedTuple):
    """A summary of the predictions for a file."""

    rows: int
    confidence: float  # on average
    abstained: int  # rows without a decision
    labelled: bool  # whether the true class of every row is known
    abstains: bool = False  # whether rows may be left without a decision


def predict_file(
    model: Model,
    path: str | Path,
    out: str | Path,
    *,
    target: str | None = None,
    keep: Sequence[str] = (),
    abstain_below: float | None = None,
    sets: float | None = None,
    sets_score: str | None = None,
    sets_by_class: bool | None = None,
    certify: str | None = None,
    costs: str | Path | None = None,
    temperature: bool | None = None,
    samples: int | None = None,
    say: Callable[[str], None] | None = None,
    **options: Any,
) -> Predicted:
    """Predict every row of a file, a block at a time, in constant memory.

    The output has a column ``label`` with the true class if the file has one, ``decision``, ``p_<class>`` for every class,
    ``confidence``, and the ``epistemic`` and ``aleatoric`` uncertainty in nats (before a temperature). It appears when it is
    complete. A model that was trained for sets or a certified threshold applies them, unless others are asked for here: a
    column ``set`` holds the classes of the set, joined by ``|``, and ``decision`` is empty where the threshold abstains. A
    model with rows set aside also gives ``outsider``, the share of those rows that look less unlike the training data
    (`SetAsideRows.outsider`).

    Args:
        model: a trained model.
        path: a table in a file, or a folder of images or texts.
        out: the ``.csv`` or ``.parquet`` file to write.
        target: the column of the true classes; by default the one that the model was trained on, if it is there.
        keep: columns to copy to the output; those that numbered or named the rows in training are copied anyway.
        abstain_below: leave the decision empty where the confidence is lower, and add a column ``abstain``.
        sets: the coverage of prediction sets; like those below, only for models that were trained with rows set aside.
        sets_score: of the sets: ``"lac"``, ``"aps"``, ``"raps"`` or ``"top-k"``.
        sets_by_class: cover every class as often.
        certify: a threshold to certify, such as ``"accuracy=0.95"``.
        costs: a file of what each action costs for each class, to decide by the least expected cost; for any model.
        temperature: scale the probabilities by the model's temperature; by default if it was calibrated on all rows, as
            `train` does.
        samples: of the weights; those of training by default.
        say: called with each note for the user.
        options: the format of the file's text, by the names of `calibayes.tables.TableOptions`.
    """
    table_options = TableOptions(**options)
    actions = RowActions(
        model,
        table_options,
        abstain_below=abstain_below,
        temperature=temperature,
        samples=samples,
        sets=sets,
        sets_score=sets_score,
        sets_by_class=sets_by_class,
        certify=certify,
        costs=costs,
    )
    source, total, summed_confidence = Path(path), 0, 0.0
    copied: dict[str, str] | None = None
    notes = _PredictionNotes(model, None)
    with prediction_writer(Path(out)) as write, closing(row_blocks(source, table_options)) as blocks:
        for block in blocks:
            table = block.table
            if copied is None:
                model.check_columns(table.column_names)
                copied = _copied_columns(model, table, source, target, keep)
                notes = _PredictionNotes(model, copied.get(LABEL))
                used = {*copied.values(), *model.coding.needs, model.target, FILE}
                unused = [name for name in table.column_names if name not in used]
                if unused and say is not None:
                    say(f"Columns not used: {listed(unused)}.")
            notes.look(block)
            predictive = model.predict(block, samples=samples)
            scaled = actions.probs(predictive)
            probs = scaled.numpy()
            confidence = probs.max(1)
            columns: dict[str, Any] = {
                name: np.array(table.column(own).fill_null("").to_pylist(), dtype=object) for name, own in copied.items()
            }
            columns |= actions.columns(scaled)
            columns |= {f"p_{name}": probs[:, place] for place, name in enumerate(model.classes)}
            numbers = (confidence, predictive.epistemic.numpy(), predictive.aleatoric.numpy())
            write(columns | dict(zip(_UNCERTAINTIES, numbers, strict=True)) | actions.outsider(predictive))
            total += table.num_rows
            summed_confidence += float(confidence.sum())
        if not total:
            raise file_problem(source, "there are no rows. Write one for each example.")
    if say is not None:
        for note in (*notes.notes(), *actions.notes):
            say(note)
    return Predicted(total, summed_confidence / total, actions.abstained, notes.labelled, actions.abstains)


def _copied_columns(model: Model, table: Any, source: Path, target: str | None, keep: Sequence[str]) -> dict[str, str]:
    """Return the columns to copy from a file, by their names in the output."""
    there = table.column_names
    missing = [name for name in (*keep, *([] if target is None else [target])) if name not in there]
    if missing:
        raise file_problem(source, f"there is no column {shown(missing[0])}. The columns are {listed(there)}.")
    label = target if target is not None else model.target if model.target in there else None
    if source.is_dir() and label == LABEL and not set(table.column(LABEL).to_pylist()) <= set(model.classes):
        label = None  # its folders are not the classes
    others = [FILE] if FILE in there and (source.is_dir() or FILE in model.coding.needs) else []
    others += [name for name in model.identifiers if name in there and name not in _OUTPUTS and named_score(name) is None]
    names = {} if label is None else {LABEL: label}
    for name in dict.fromkeys((*others, *keep)):
        if name != label:
            if name in _OUTPUTS or named_score(name) is not None:
                raise InvalidArgumentError(
                    f"Expected --keep not to name {name!r}, which would be taken for a column of the predictions. Rename it."
                )
            names[name] = name
    return names


class _PredictionNotes:
    """Collects notes for the user from the blocks of a file, with the column ``label`` of the true classes, if any."""

    def __init__(self, model: Model, label: str | None) -> None:
        columns = model.coding.columns if isinstance(model.coding, TableCoding) else ()
        self._categories = [column for column in columns if isinstance(column, CategoryColumn)]
        self._unseen: Counter[str] = Counter()
        self._filled: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._label, self._classes = label, {label_key(name) for name in model.classes}
        self._unlabelled, self._unknown_label = 0, ""

    def look(self, block: RowBlock) -> None:
        for column in self._categories:
            unseen, filled, first = column.unseen(block)
            self._unseen[column.name] += unseen
            self._filled[column.name] += filled
            if first is not None:
                self._first.setdefault(column.name, first)
        if self._label is not None:
            counts = Counter(block.cells(self._label).to_pylist())
            bad = {text: count for text, count in counts.items() if text is None or label_key(text) not in self._classes}
            self._unlabelled += sum(bad.values())
            self._unknown_label = self._unknown_label or next((text for text in bad if text is not None), "")

    @property
    def labelled(self) -> bool:
        """True if every row had a class that the model knows."""
        return self._label is not None and not self._unlabelled

    def notes(self) -> list[str]:
        notes = [
            f"Most cells of column {shown(name)} are not among the frequent categories of the training data, like "
            f"{shown(self._first[name])}: they tell the model little."
            for name, unseen in self._unseen.items()
            if 2 * unseen > self._filled[name]
        ]
        if self._unlabelled:
            like = f", like {shown(self._unknown_label)}" if self._unknown_label else ""
            rows = f"{counted(self._unlabelled, 'row')} without a class in {shown(self._label)} that the model knows{like}"
            notes.append(f"{rows}: remove them before calibayes evaluate.")
        return notes
