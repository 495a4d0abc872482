"""Predictions as a file holds them: probabilities, labels, and which columns they were taken from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibayes.wording import counted, shown

__all__ = ["ColumnsUsed", "PredictionTable"]


@dataclass(frozen=True, kw_only=True)
class ColumnsUsed:
    """Which columns of a file were taken for what.

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


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionTable:
    """What one classifier said about some examples, and what they were.

    Attributes:
        name: a name for the classifier, from the name of the file.
        path: the file.
        probs: class probabilities, float64 ``[n, K]``.
        targets: the index of the true class, int64 ``[n]``.
        class_names: what the classes are called, in the order of the columns of ``probs``.
        kind: whether the file held probabilities or logits.
        logits: float64 ``[n, K]`` with ``probs = softmax(logits)`` if the file held logits, else None.
        weights: float64 ``[n]`` if a column was named for them, else None.
        ids: one text for each example if a column was named for them, else None.
        columns: which columns were taken for what.
    """

    name: str
    path: Path
    probs: npt.NDArray[np.float64] = field(repr=False)
    targets: npt.NDArray[np.int64] = field(repr=False)
    class_names: tuple[str, ...]
    kind: Literal["probabilities", "logits"]
    logits: npt.NDArray[np.float64] | None = field(default=None, repr=False)
    weights: npt.NDArray[np.float64] | None = field(default=None, repr=False)
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
        """What was taken for what, on one line, for a person to check.

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
