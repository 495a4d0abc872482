"""The options of several commands that ask for sets, a certified threshold, or decisions by cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from calibayes.commands.data_options import option

__all__ = ["NAMES", "Certify", "Costs", "Sets", "SetsByClass", "SetsScore"]

NAMES = ("sets", "sets_score", "sets_by_class", "certify", "costs")
"""The parameters of a command that have these options."""

Sets = Annotated[float | None, option("Prediction sets that hold the true class this often, like 0.9.")]
SetsScore = Annotated[
    str | None, option("The score of the sets: lac (the smallest), aps or raps (larger for hard rows), top-k.", "lac")
]
SetsByClass = Annotated[bool | None, option("Let sets hold the true class as often for each class.", False, "--sets-by-class")]
Certify = Annotated[
    str | None,
    option(
        "Certify a confidence threshold, and abstain below it: accuracy=0.95, precision=0.9 (of each class) or cost=0.2 (with "
        "--costs); with ,certainty=0.99 for another certainty than 0.9."
    ),
]
Costs = Annotated[
    Path | None,
    option("Decide by the least expected cost: a table with a row for each action and a column for each true class."),
]
