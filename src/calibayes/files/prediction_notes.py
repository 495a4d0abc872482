"""What turns up while a file is predicted that its user should know: strange categories, and labels that are of no use."""

from __future__ import annotations

from collections import Counter

from calibayes.files.model import Model
from calibayes.files.table_coding import TableCoding
from calibayes.files.table_columns import CategoryColumn
from calibayes.tables import RowBlock
from calibayes.tables.spelling import key
from calibayes.wording import counted, shown

__all__ = ["PredictionNotes"]


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
        self._label, self._classes = label, {key(name) for name in model.classes}
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
            bad = {text: count for text, count in counts.items() if text is None or key(text) not in self._classes}
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
