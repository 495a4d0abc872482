"""Fill the tables of the page on shift from the records of trainings.

python -m reproduction.shift.fill_page docs/explanation/shift.md [results/reproduction]

A page that does not exist yet starts as `page_skeleton.md`, beside this file. Only what stands between two marks changes, from
``<!-- table: shift-cifar10 nll -->`` to ``<!-- end of table -->``; the text around them is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from calibayes.errors import InvalidArgumentError
from calibayes.terminal import print_line, stdout_console
from calibayes.wording import did_you_mean
from reproduction.experiment_results import PartResults
from reproduction.experiments import experiment
from reproduction.run_experiment import recorded
from reproduction.shift.shift_tables import SCORE_COLUMNS, people_rows, severity_rows

__all__ = ["SKELETON", "filled", "markdown_table"]

SKELETON = Path(__file__).with_name("page_skeleton.md")
_TABLE = re.compile(r"(<!-- table: (\S+) (\S+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
_COLUMNS = {column.name: column for column in SCORE_COLUMNS}
_WITHOUT = "No results yet.\n"


def filled(page: str, folder: Path) -> str:
    """The page with every table made anew from the records in a folder."""

    def table(found: re.Match[str]) -> str:
        begin, name, score, end = found.groups()
        return f"{begin}\n{_content(name, score, folder)}\n{end}"

    return _TABLE.sub(table, page)


def _content(name: str, score: str, folder: Path) -> str:
    asked = experiment(name)
    if score not in (*_COLUMNS, "people"):
        hint = did_you_mean(score, (*_COLUMNS, "people"))
        raise InvalidArgumentError(f"Expected a table of {name} to be of a score, but got {score!r}. {hint}")
    parts = [part for part in recorded(asked, folder) if part.results] if (folder / asked.data).is_dir() else []
    return markdown_table(parts, score) if parts else _WITHOUT


def markdown_table(parts: Sequence[PartResults], score: str) -> str:
    """The table of a score by severity, or of the scores by people's answers, in Markdown."""
    heads, rows = people_rows(parts) if score == "people" else severity_rows(parts, _COLUMNS[score])
    heads = tuple(head.replace("|", "\\|") for head in heads)
    lines = [("method", *heads), ("---", *("---:" for _ in heads)), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit("Usage: python -m reproduction.shift.fill_page docs/explanation/shift.md [results/reproduction]")
    path, results = Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) == 3 else "results/reproduction")
    text = filled((path if path.exists() else SKELETON).read_text(encoding="utf-8"), results)
    path.write_text(text, encoding="utf-8")
    print_line(stdout_console(), f"Written: {path}")
