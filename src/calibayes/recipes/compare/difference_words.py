"""Differences and scores in words."""

from __future__ import annotations

from calibayes.recipes.compare.difference_interval import Estimate
from calibayes.recipes.compare.score_columns import COLUMNS

__all__ = ["NAMES", "changed", "difference_cells", "score_words", "size_words"]

NAMES = {"nll": "NLL", "ece": "ECE", "accuracy": "accuracy", "brier": "Brier"}
_COLUMN = {column.name: column for column in COLUMNS}


def score_words(value: float, score: str) -> str:
    """Write a score with its unit.

    Examples:
        >>> score_words(0.873, "accuracy"), score_words(0.2804, "nll")
        ('87.3 %', '0.280')
    """
    column = _COLUMN[score]
    return f"{column.scale * value:.{column.digits}f}{' %' if column.scale == 100 else ''}"


def changed(difference: Estimate, score: str) -> str:
    """Describe a change, such as "ECE lower by 1.2 points (0.3 to 2.1)"."""
    by, ends = difference_cells(difference, score)
    if not float(by) and not (difference.above or difference.below):
        return f"{NAMES[score]} the same ({ends})"
    word = "higher" if difference.value > 0 else "lower"
    after = "" if difference.above or difference.below else "; may be chance"
    return f"{NAMES[score]} {word} by {size_words(difference, score, after=after)}"


def size_words(difference: Estimate, score: str, before: str = "", after: str = "") -> str:
    """Write a difference without its sign, and its interval, with words ``before`` and ``after`` it in the parentheses."""
    by, ends = difference_cells(difference.scaled(-1.0 if difference.value < 0 else 1.0), score)
    unit = " points" if _COLUMN[score].scale == 100 else ""
    return f"{by}{unit} ({before}{ends}{after})"


def difference_cells(difference: Estimate, score: str) -> tuple[str, str]:
    """Write a difference, and the ends of its interval."""
    column = _COLUMN[score]
    value, low, high = (
        # Adding zero turns -0.000 into 0.000.
        f"{round(column.scale * number, column.digits) + 0.0:.{column.digits}f}"
        for number in (difference.value, difference.low, difference.high)
    )
    return value, f"{low} to {high}"
