"""What predictions should tell the user about the rows of a file: unseen categories, and classes that are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from calibayes.files.model import Model
from calibayes.files.table_coding import TableCoding
from calibayes.files.table_columns import CategoryColumn, InputColumn
from calibayes.tables import RowBlock
from calibayes.tables.numbers import FEW_CELLS, is_missing, label_key, says_missing
from calibayes.wording import counted, shown

__all__ = ["BlockNotes", "BlockObserver", "PredictionNotes", "missing_line", "unseen_line"]


@dataclass(frozen=True)
class BlockNotes:
    """What was noticed in a block of rows."""

    unseen: dict[str, int]  # by column: filled cells that are not among the frequent categories of the training data
    filled: dict[str, int]  # by column of categories: all filled cells
    first: dict[str, str]  # the first unseen category of a column
    unlabelled: int = 0  # rows without a class that the model knows
    unknown_label: str = ""  # the first class that it does not know
    missing: dict[str, int] = field(default_factory=dict)  # by column that had none missing in training: missing cells


@final
class BlockObserver:
    """Looks at blocks of rows, with the column ``label`` of the true classes, if any."""

    def __init__(self, model: Model, label: str | None) -> None:
        columns = model.coding.columns if isinstance(model.coding, TableCoding) else ()
        self._categories = [column for column in columns if isinstance(column, CategoryColumn)]
        self._filled = [column for column in columns if not column.missing]
        self._label, self._classes = label, {label_key(name) for name in model.classes}

    def notes(self, block: RowBlock) -> BlockNotes:
        """Return what is to be noticed in a block."""
        seen = self.unseen(block)
        unlabelled, unknown = self._labels(block)
        return BlockNotes(
            unseen={name: unseen for name, (unseen, _, _) in seen.items()},
            filled={name: filled for name, (_, filled, _) in seen.items()},
            first={name: first for name, (_, _, first) in seen.items() if first is not None},
            missing=self.missing(block),
            unlabelled=unlabelled,
            unknown_label=unknown,
        )

    def unseen(self, block: RowBlock) -> dict[str, tuple[int, int, str | None]]:
        """Return, by column of categories, how many cells are unseen, how many are filled, and the first unseen category."""
        return {column.name: column.unseen(block) for column in self._categories}

    def missing(self, block: RowBlock) -> dict[str, int]:
        """Return how many cells are missing in columns that had none in the training data."""
        counts = {column.name: _missing(block, column) for column in self._filled}
        return {name: count for name, count in counts.items() if count}

    def notices(self, block: RowBlock) -> bool:
        """Return True if cells are missing that none were in training, or any category is unseen."""
        return bool(self.missing(block)) or any(unseen for unseen, _, _ in self.unseen(block).values())

    def _labels(self, block: RowBlock) -> tuple[int, str]:
        if self._label is None:
            return 0, ""
        counts = {each["values"]: each["counts"] for each in block.cells(self._label).value_counts().to_pylist()}
        bad = {text: count for text, count in counts.items() if text is None or label_key(text) not in self._classes}
        return sum(bad.values()), next((text for text in bad if text is not None), "")


def _missing(block: RowBlock, column: InputColumn) -> int:
    category = isinstance(column, CategoryColumn)  # there NA is a category
    if len(block.rows) <= FEW_CELLS:
        cells = ("" if text is None else text.strip() for text in block.table.column(column.name).to_pylist())
        return sum(not cell if category else is_missing(cell) for cell in cells)
    cells = block.cells(column.name)
    return int(cells.null_count if category else says_missing(cells).true_count)


def unseen_line(name: str, unseen: int, filled: int, first: str | None) -> str | None:
    """Say that most cells of a column are categories that the model does not know; None if they are not."""
    if 2 * unseen <= filled:
        return None
    return (
        f"Most cells of column {shown(name)} are not among the frequent categories of the training data, like "
        f"{shown(first)}: they tell the model little."
    )


def missing_line(missing: Mapping[str, int]) -> str:
    """Say which cells are missing that no row of the training data lacked."""
    name = max(missing, key=lambda each: missing[each])
    where = f"column {shown(name)}" if len(missing) == 1 else f"{len(missing)} columns, like {shown(name)}"
    return (
        f"Cells are missing in {where}, up to {counted(missing[name], 'row')}, but none were in the training data: what the "
        "model says of such rows has not been tested, and no guarantee covers them."
    )


@final
class PredictionNotes:
    """Adds up what was noticed in the blocks of a file, in their order."""

    def __init__(self, label: str | None) -> None:
        self._label = label
        self._unseen: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()
        self._filled: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._unlabelled, self._unknown_label = 0, ""

    def add(self, notes: BlockNotes) -> None:
        """Add the notes of the next block."""
        self._unseen.update(notes.unseen)
        self._filled.update(notes.filled)
        self._missing.update(notes.missing)
        self._first = {**notes.first, **self._first}
        self._unlabelled += notes.unlabelled
        self._unknown_label = self._unknown_label or notes.unknown_label

    @property
    def labelled(self) -> bool:
        """True if every row had a class that the model knows."""
        return self._label is not None and not self._unlabelled

    def lines(self) -> list[str]:
        """Return the lines for the user."""
        each = (unseen_line(name, unseen, self._filled[name], self._first.get(name)) for name, unseen in self._unseen.items())
        lines = [line for line in each if line is not None]
        lines += [missing_line(self._missing)] if self._missing else []
        if self._unlabelled:
            like = f", like {shown(self._unknown_label)}" if self._unknown_label else ""
            rows = f"{counted(self._unlabelled, 'row')} without a class in {shown(self._label)} that the model knows{like}"
            lines.append(f"{rows}: remove them before calibayes evaluate.")
        return lines
