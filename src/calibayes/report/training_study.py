"""Everything that the report on a training says, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from calibayes.acting.guarantees import Guarantees
from calibayes.errors import InvalidArgumentError
from calibayes.metrics import Array, Interval, class_rates, confusion_matrix, roc_auc, roc_auc_interval
from calibayes.metrics.confusion import ClassRates, most_confused
from calibayes.metrics.score_table import as_json_numbers
from calibayes.report.study import study

__all__ = ["AttemptSummary", "ImportantColumn", "ScoredOn", "TrainingStudy"]

ScoredOn = Literal["held-out folds", "test part", "test file"]

_MOST_CLASSES = 40  # of a confusion matrix that anybody reads
_MOST_PAIRS = 15  # of confused classes


class AttemptSummary(Protocol):
    """One way to learn, and what came of it; `calibayes.crossfit.Attempt` is one."""

    @property
    def title(self) -> str:
        """Its name."""

    @property
    def result(self) -> str:
        """``"complete"``, or how it ended: ``"behind"``, ``"too slow"`` or ``"failed"``."""

    @property
    def nll(self) -> float:
        """The mean out-of-fold loss; NaN if there is none."""

    @property
    def standard_error(self) -> float:
        """The standard error of that mean."""

    @property
    def seconds(self) -> float:
        """How long it took."""

    @property
    def reason(self) -> str:
        """Why it ended early; empty if complete."""


class ImportantColumn(Protocol):
    """A column, and the increase of the NLL without it; `ColumnImportance` of `permutation_importance` is one."""

    @property
    def name(self) -> str:
        """The column."""

    @property
    def increase(self) -> float:
        """The increase, in nats."""

    @property
    def low(self) -> float:
        """The lower end of its interval."""

    @property
    def high(self) -> float:
        """The upper end of its interval."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingStudy:
    """A training, and honest predictions by which to judge it.

    Attributes:
        probs: class probabilities ``[n, K]`` of rows that had no part in the training behind them, one column for two classes.
        targets: the true classes of these rows.
        class_names: in the order of the columns.
        file: the name of the data.
        rows: how many examples there were to learn from.
        columns: how many columns there were to learn from.
        examples: what they are called: rows, texts or images. Of the latter two the report says nothing about columns.
        target: the column of the classes.
        method: the title of the method that was used, or chosen.
        scored_on: which rows ``probs`` are of: those held out by folds, a part of the file that was kept back, or another file.
        folds: how many there were, if rows were held out by folds.
        group: the column whose values were kept in one fold each, if any.
        time: the column by which rows were predicted from earlier ones, if any.
        stopped_on_held_out: whether a fold's rows decided when the training of its model stopped, which the report then says.
        test_file: the name of the other file, if the rows are from one.
        command: by which the report can be made again.
        attempts: all methods that were tried, if there was a choice.
        importance: columns by the increase of the NLL without them, largest first.
        importance_note: why there is no importance, or anything else to say about it.
        warnings: what scores and verdict do not show, such as that nothing was learnt; the report has them beside the verdict.
        notes: about the data, in sentences.
        guarantees: prediction sets and a certified threshold, from rows that were set aside.
        level: of the intervals.
        replicates: of the bootstrap.
        seed: of the bootstrap.
    """

    probs: Array
    targets: Array
    class_names: Sequence[str]
    file: str
    rows: int
    columns: int
    target: str
    method: str
    scored_on: ScoredOn
    examples: str = "rows"
    folds: int | None = None
    group: str | None = None
    time: str | None = None
    stopped_on_held_out: bool = True
    test_file: str | None = None
    command: str | None = None
    attempts: Sequence[AttemptSummary] = ()
    importance: Sequence[ImportantColumn] = ()
    importance_note: str = ""
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    guarantees: Guarantees | None = None
    level: float = 0.95
    replicates: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.scored_on == "held-out folds" and self.folds is None:
            raise InvalidArgumentError("Expected `folds`, the number of folds, for rows that were held out by folds.")

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON has it: a study of one model, and ``"training"``."""
        files = [self.file] if self.test_file is None else [self.file, self.test_file]
        judged = study(
            {self.method: self.probs},
            self.targets,
            class_names=self.class_names,
            level=self.level,
            replicates=self.replicates,
            seed=self.seed,
            origin={"command": self.command, "files": files},
        )
        names = (
            "file",
            "rows",
            "columns",
            "examples",
            "target",
            "method",
            "scored_on",
            "folds",
            "group",
            "time",
            "stopped_on_held_out",
        )
        training = {name: getattr(self, name) for name in (*names, "test_file", "importance_note")}
        fields = ("title", "result", "nll", "standard_error", "seconds", "reason")
        of_columns = ("name", "increase", "low", "high")
        training |= {
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "attempts": [{name: getattr(each, name) for name in fields} for each in self.attempts],
            "importance": [{name: getattr(each, name) for name in of_columns} for each in self.importance],
            **self._classes(),
        }
        content = {**judged.to_dict(), "training": as_json_numbers(training)}
        if self.guarantees is not None:
            content["models"][0]["guarantees"] = as_json_numbers(self.guarantees.to_dict(list(map(str, self.class_names))))
        return content

    def _classes(self) -> dict[str, Any]:
        counts = confusion_matrix(self.probs, self.targets)
        support = counts.sum(1)
        frequencies = support.double() / support.sum()
        rates = class_rates(self.probs, self.targets, level=self.level)
        names = list(map(str, self.class_names))
        return {
            "guess": {
                "name": names[int(support.argmax())],
                "accuracy": float(frequencies.max()),
                "nll": float(torch.special.entr(frequencies).sum()),
            },
            "roc_auc": self._auc() if len(names) == 2 else None,
            "confusion": counts.tolist() if len(names) <= _MOST_CLASSES else None,
            "confused": _confused(counts, names),
            "class_rates": [_rates(name, each) for name, each in zip(names, rates, strict=True)],
        }

    def _auc(self) -> dict[str, float]:
        ends = roc_auc_interval(self.probs, self.targets, level=self.level)
        return _with_ends(roc_auc(self.probs, self.targets), ends)


def _confused(counts: Tensor, names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"true": names[pair.true], "predicted": names[pair.predicted], "count": int(pair.cases), "share": pair.share}
        for pair in most_confused(counts, _MOST_PAIRS)
    ]


def _rates(name: str, rates: ClassRates) -> dict[str, Any]:
    return {
        "name": name,
        "support": int(rates.support),
        "predicted": int(rates.predicted),
        "precision": _with_ends(rates.precision, rates.precision_interval),
        "recall": _with_ends(rates.recall, rates.recall_interval),
        "f1": _with_ends(rates.f1, rates.f1_interval),
    }


def _with_ends(value: float, ends: Interval) -> dict[str, float]:
    return {"value": value, "low": ends.low, "high": ends.high}
