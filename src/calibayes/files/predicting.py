"""Predictions for a file of any length, written as they are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from calibayes.checks import positive_integer
from calibayes.data.predictions.column_names import named_score
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.files.read_rows import FILE, LABEL
from calibayes.files.model import Model
from calibayes.files.prediction_writer import written
from calibayes.files.read_rows import row_blocks
from calibayes.files.table_coding import TableCoding
from calibayes.files.table_columns import CategoryColumn
from calibayes.tables import RowBlock, TableOptions
from calibayes.tables.numbers import label_key
from calibayes.wording import counted, listed, shown, shown_path

__all__ = ["Predicted", "predict_file"]

_UNCERTAINTIES = ("confidence", "epistemic", "aleatoric")
_OURS = (LABEL, "decision", "abstain", *_UNCERTAINTIES)


class Predicted(NamedTuple):
    """How many rows were predicted, how sure on average, how many without a decision, and whether the class of all is known."""

    rows: int
    confidence: float
    abstained: int
    labelled: bool


def predict_file(
    model: Model,
    path: str | Path,
    out: str | Path,
    *,
    target: str | None = None,
    keep: Sequence[str] = (),
    abstain_below: float | None = None,
    temperature: bool = False,
    samples: int | None = None,
    say: Callable[[str], None] | None = None,
    **options: Any,
) -> Predicted:
    """Predict every row of a file, a part at a time, in constant memory.

    What is written has a column ``label`` with the true class where the file has one, ``decision``, ``p_<class>`` for every
    class, ``confidence``, and the ``epistemic`` and ``aleatoric`` uncertainty in nats (those before a temperature). It appears
    under its name when it is whole.

    Args:
        model: a trained model.
        path: a table in a file, or a folder of images or texts.
        out: where to write: a ``.csv`` or ``.parquet`` file.
        target: the column of the true classes; by default the one that the model was trained on, if it is there.
        keep: columns that are copied into the result.
        abstain_below: leave the decision empty where the confidence is lower, and say so in a column ``abstain``.
        temperature: scale the probabilities by the model's temperature.
        samples: of the weights; those of training by default.
        say: is told what the user should know.
        options: how the text of the file is written, by the names of `calibayes.tables.TableOptions`.
    """
    if abstain_below is not None and not 0 <= abstain_below <= 1:
        raise InvalidArgumentError(f"Expected `abstain_below` to lie between 0 and 1, but got {abstain_below!r}.")
    if samples is not None:
        positive_integer("samples", samples, 1_000_000)
    written_as = TableOptions(**options)
    source, total, abstained, sure = Path(path), 0, 0, 0.0
    carried: _Carried | None = None
    notes = PredictionNotes(model, None)
    with written(Path(out)) as write, closing(row_blocks(source, written_as)) as blocks:
        for block in blocks:
            table = block.table
            if carried is None:
                model.check_columns(table.column_names)
                carried = _Carried.of(model, table, source, target, keep)
                notes = PredictionNotes(model, carried.names.get(LABEL))
                if carried.unused and say is not None:
                    say(f"Columns not used: {listed(carried.unused)}.")
            notes.look(block)
            predictive = model.predict(block, samples=samples)
            probs = (model.scaled(predictive) if temperature else predictive.probs).numpy()
            confidence = probs.max(1)
            found: dict[str, Any] = carried.columns(table)
            found["decision"] = np.array(model.classes, dtype=object)[probs.argmax(1)]
            if abstain_below is not None:
                unsure = confidence < abstain_below
                found["decision"][unsure] = ""
                abstained += int(unsure.sum())
                found["abstain"] = np.where(unsure, "true", "false").astype(object)
            found |= {f"p_{name}": probs[:, place] for place, name in enumerate(model.classes)}
            numbers = (confidence, predictive.epistemic.numpy(), predictive.aleatoric.numpy())
            write(found | dict(zip(_UNCERTAINTIES, numbers, strict=True)))
            total += table.num_rows
            sure += float(confidence.sum())
        if carried is None or not total:
            raise DataError(f"{shown_path(source)}: there are no rows. Write one for each example.")
    if say is not None:
        for note in notes.notes():
            say(note)
    return Predicted(total, sure / total, abstained, notes.labelled)


@dataclass(frozen=True)
class _Carried:
    """Columns that go from the file into the result, by their names there, and those that are of no use."""

    names: dict[str, str]
    unused: tuple[str, ...]

    @classmethod
    def of(cls, model: Model, table: Any, source: Path, target: str | None, keep: Sequence[str]) -> _Carried:
        """What can be carried from a table."""
        there = table.column_names
        missing = [name for name in (*keep, *([] if target is None else [target])) if name not in there]
        if missing:
            raise DataError(f"{shown_path(source)}: there is no column {shown(missing[0])}. The columns are {listed(there)}.")
        label = target if target is not None else model.target if model.target in there else None
        if source.is_dir() and label == LABEL and not set(table.column(LABEL).to_pylist()) <= set(model.classes):
            label = None  # its folders are not the classes
        others = [FILE] if FILE in there and (source.is_dir() or FILE in model.coding.needs) else []
        names = {} if label is None else {LABEL: label}
        for name in dict.fromkeys((*others, *keep)):
            if name != label:
                _check_kept(name)
                names[name] = name
        used = {*names.values(), *model.coding.needs, model.target, FILE}
        return cls(names, tuple(name for name in there if name not in used))

    def columns(self, table: Any) -> dict[str, Any]:
        """The columns of a part of the file."""
        return {name: np.array(table.column(own).fill_null("").to_pylist(), dtype=object) for name, own in self.names.items()}


def _check_kept(name: str) -> None:
    """Raise if a column would be taken for one of those that are written."""
    if name in _OURS or named_score(name) is not None:
        raise InvalidArgumentError(
            f"Expected --keep not to name {name!r}, which would be taken for one of the columns that are written. Rename it."
        )


@final
class PredictionNotes:
    """Looks at the parts of a file, one after the other.

    Args:
        model: that predicts it.
        label: the column of the true classes, if there is one.
    """

    def __init__(self, model: Model, label: str | None) -> None:
        columns = model.coding.columns if isinstance(model.coding, TableCoding) else ()
        self._categories = [column for column in columns if isinstance(column, CategoryColumn)]
        self._unseen: Counter[str] = Counter()
        self._filled: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._label, self._classes = label, {label_key(name) for name in model.classes}
        self._unlabelled, self._strange = 0, ""

    def look(self, block: RowBlock) -> None:
        """See the next part."""
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
            self._strange = self._strange or next((text for text in bad if text is not None), "")

    @property
    def labelled(self) -> bool:
        """Whether every row has had a class that the model knows."""
        return self._label is not None and not self._unlabelled

    def notes(self) -> list[str]:
        """What the user should know."""
        found = [
            f"Most cells of column {shown(name)} are none of the categories that training knew well, like "
            f"{shown(self._first[name])}: they say little."
            for name, unseen in self._unseen.items()
            if 2 * unseen > self._filled[name]
        ]
        if self._unlabelled:
            like = f", like {shown(self._strange)}" if self._strange else ""
            found.append(
                f"{counted(self._unlabelled, 'row')} without a class in {shown(self._label)} that the model knows{like}: leave "
                "them out before calibayes evaluate."
            )
        return found
