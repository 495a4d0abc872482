"""The columns of a table of methods: their scores, their format, and which end is good."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from calibayes.metrics import Scores
from calibayes.recipes.compare.comparison_settings import Settings
from calibayes.recipes.compare.split_table import SplitTable, TableColumn

__all__ = ["COLUMNS", "ScoreColumn", "Summary", "listed", "score_table", "summary", "values_summary", "weight"]


class Summary(NamedTuple):
    """The mean over seeds, and their standard deviation (``None`` for a single seed)."""

    mean: float
    std: float | None


class ScoreColumn(NamedTuple):
    """A score as tables show it."""

    name: str
    title: str
    scale: float  # a factor, such as 100 for per cent
    digits: int
    sign: str
    best: str | None  # which end is good

    def show(self, value: Summary) -> str:
        """The number as a cell."""
        text = f"{self.scale * value.mean:{self.sign}.{self.digits}f}"
        return text if value.std is None else f"{text} ± {self.scale * value.std:.{self.digits}f}"


COLUMNS = (
    ScoreColumn("accuracy", "accuracy %", 100, 1, "", "highest"),
    ScoreColumn("ece", "ECE %", 100, 1, "", "lowest"),
    ScoreColumn("nll", "NLL", 1, 3, "", "lowest"),
    ScoreColumn("brier", "Brier", 1, 3, "", "lowest"),
    ScoreColumn("overconfidence", "overconfi-\ndence %", 100, 1, "+", None),
)


def summary(scores: Sequence[Scores]) -> dict[str, Summary]:
    """Mean and spread of every column, over the seeds of one method.

    Examples:
        >>> scores = calibayes.evaluate(torch.tensor([[0.9, 0.1], [0.4, 0.6]]), torch.tensor([0, 0]))
        >>> summary([scores, scores])["accuracy"]
        Summary(mean=0.5, std=0.0)
    """
    return {column.name: values_summary([float(getattr(each, column.name)) for each in scores]) for column in COLUMNS}


def values_summary(values: Sequence[float]) -> Summary:
    """Mean and standard deviation, which is NaN where a value, such as an NLL, is infinite."""
    spread = None
    if len(values) > 1:
        spread = statistics.stdev(values) if all(map(math.isfinite, values)) else math.nan
    return Summary(sum(values) / len(values), spread)


def score_table(
    settings: Settings, examples: str, heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str], Sequence[Scores]]]
) -> SplitTable:
    """Test scores side by side; ``rows`` have a name, further cells below ``heads``, and scores with every seed."""
    spread = f"mean ± standard deviation over {settings.seeds} seeds" if settings.seeds > 1 else "one seed"
    titles = (*heads[1:], *(column.title for column in COLUMNS))
    names: list[str] = []
    lines: list[list[str]] = []
    for name, cells, scores in rows:
        means = summary(scores)
        names.append(name)
        lines.append([*cells, *(column.show(means[column.name]) for column in COLUMNS)])
    columns = [TableColumn(title, [line[place] for line in lines]) for place, title in enumerate(titles)]
    return SplitTable(f"{settings.test:,} test {examples}, {spread}", TableColumn(heads[0], names, left=True), columns)


def weight(value: float) -> str:
    """A cell for λ or β, with a dash for a method that has none."""
    return f"{value:g}" if value else "–"


def listed(values: Sequence[float]) -> str:
    """Values to choose from, such as {3, 10}."""
    return "{" + ", ".join(f"{value:g}" for value in values) + "}"
