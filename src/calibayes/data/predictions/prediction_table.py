"""Predictions from a file: probabilities, labels, and the columns that they were taken from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from calibayes.data.predictions.column_values import Ints, TextColumn
from calibayes.data.predictions.npz_arrays import NpzArrays
from calibayes.tables import TableFile
from calibayes.tables.numbers import Floats
from calibayes.wording import counted, shown

__all__ = ["ColumnsUsed", "NamedColumns", "PredictionTable", "RawPredictions"]


@dataclass(frozen=True, kw_only=True)
class ColumnsUsed:
    """The columns of a file that were used, and for what.

    Attributes:
        label: the column of the labels.
        scores: the columns of the probabilities or logits, one for each class; one alone for two classes.
        weights: the column of the weights, if any.
        id: the column of the ids, if any.
        ignored: the columns that were not used.
    """

    label: str
    scores: tuple[str, ...]
    weights: str | None = None
    id: str | None = None
    ignored: tuple[str, ...] = ()


class NamedColumns(NamedTuple):
    """The columns or arrays that the user named, and whether the scores are logits; None to detect it."""

    label: str | None
    scores: str | Sequence[str] | None
    logits: bool | None
    weights: str | None
    id: str | None


@dataclass(frozen=True, eq=False, kw_only=True)
class RawPredictions:
    """The contents of a file of predictions, before labels are matched to classes and scores are checked."""

    source: TableFile | NpzArrays
    used: ColumnsUsed
    labels: TextColumn
    scores: Floats  # [n, k]; k = 1 is the score of one of two classes
    logits: bool
    # What the classes may be called, the likeliest first; for k = 1 the class of the column, or both if the file names both.
    namings: tuple[tuple[str, ...], ...]
    weights: Floats | None
    ids: TextColumn | None
    half: bool = False  # stored in half precision, so that rows sum to 1 only roughly


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionTable:
    """The predictions of one classifier for some examples, and their true classes.

    Attributes:
        name: a name for the classifier, from the name of the file.
        path: the file.
        probs: class probabilities, float64 ``[n, K]``.
        targets: the index of the true class, int64 ``[n]``.
        class_names: the names of the classes, in the order of the columns of ``probs``.
        kind: whether the file held probabilities or logits.
        logits: float64 ``[n, K]`` with ``probs = softmax(logits)`` if the file held logits, else None.
        weights: float64 ``[n]`` if a column was named for them, else None.
        ids: one text for each example if a column was named for them, else None.
        columns: the columns that were used, and for what.
    """

    name: str
    path: Path
    probs: Floats = field(repr=False)
    targets: Ints = field(repr=False)
    class_names: tuple[str, ...]
    kind: Literal["probabilities", "logits"]
    logits: Floats | None = field(default=None, repr=False)
    weights: Floats | None = field(default=None, repr=False)
    ids: tuple[str, ...] | None = field(default=None, repr=False)
    columns: ColumnsUsed

    @property
    def n(self) -> int:
        """The number of examples."""
        return len(self.targets)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.class_names)

    def describe(self) -> str:
        """Describe on one line what was read from which columns, for a person to check.

        Examples:
            >>> import tempfile
            >>> path = Path(tempfile.mkdtemp()) / "model.csv"
            >>> _ = path.write_text("label,p_cat,p_dog\\ncat,0.9,0.1\\ndog,0.4,0.6\\n")
            >>> print(calibayes.data.predictions.read_predictions(path).describe())
            2 examples, 2 classes; labels from 'label'; probabilities from 2 columns, 'p_cat' … 'p_dog'
        """
        used = self.columns
        if len(used.scores) == 1:
            scores = f"{self.kind} of class {shown(self.class_names[-1])} from {shown(used.scores[0])}"
        else:
            scores = f"{self.kind} from {len(used.scores)} columns, {shown(used.scores[0])} … {shown(used.scores[-1])}"
        parts = [
            f"{counted(self.n, 'example')}, {len(self.class_names)} classes",
            f"labels from {shown(used.label)}",
            scores,
            *([f"weights from {shown(used.weights)}"] if used.weights is not None else []),
            *([f"ids from {shown(used.id)}"] if used.id is not None else []),
            *([f"{counted(len(used.ignored), 'other column')} not used"] if used.ignored else []),
        ]
        return "; ".join(parts)
