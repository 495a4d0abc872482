"""The summary that is printed after a training on a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibayes.files.training import Trained
from calibayes.methods import method_named
from calibayes.metrics import Scores
from calibayes.metrics.score_table import shown
from calibayes.report.confidence_verdict import verdict
from calibayes.training import History
from calibayes.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["closing_words", "scores_table"]

_SHOWN = ("accuracy", "nll", "brier", "ece")
_FEW = 200


def scores_table(trained: Trained) -> Table:
    """Return the scores on the test part with intervals, plain and with the temperature, if there is one."""
    from rich import box
    from rich.table import Table

    scores = trained.scores
    level = 100 * (scores.level or 0)
    copies = trained.prepared.copies
    seen = f"{copies:,} of them like some that training has seen" if copies else "which training has not seen"
    title = f"{scores.n:,} test {trained.prepared.examples}, {seen}; intervals at {level:g} %"
    table = Table(title=title, box=box.SIMPLE_HEAD, title_style="bold")
    columns = {method_named(trained.model.about["settings"]["scheme"]).title: scores}
    if trained.model.temperature != 1:
        columns[f"with temperature {trained.model.temperature:.2f}"] = trained.scaled
    for head in ("", *columns):
        table.add_column(head, justify="right" if head else "left", no_wrap=True)
    for name in _SHOWN:
        table.add_row(scores.title(name), *(_cell(each, name) for each in columns.values()))
    return table


def closing_words(trained: Trained) -> str:
    """Say how the training ended, whether its confidence can be trusted, and how certain the numbers are."""
    history, scores = trained.history, trained.scores
    lines = [*(_course(each, who) for each, who in _trainings(history)), verdict(scores, None).text]
    lines += trained.notes[len(trained.prepared.notes) :]
    if scores.n < _FEW:
        lines.append(f"With {scores.n} test {trained.prepared.examples} these numbers are rough: see the intervals.")
    if trained.helps:
        lines.append("The temperature lowers the validation NLL: use it with `calibayes predict --temperature`.")
    lines.append("Which method suits these data? calibayes compare, with the same file, says.")
    return "\n".join(lines)


def _trainings(history: History) -> list[tuple[History, str]]:
    if not history.members:
        return [(history, "")]
    return [(each, f"Member {place}: ") for place, each in enumerate(history.members, 1)]


def _course(history: History, who: str) -> str:
    how = "stopped early" if history.stopped == "early" else "not stopped early: more --epochs might help"
    return f"{who}{counted(len(history.epochs), 'epoch')}, the best was {history.best_epoch} ({how})."


def _cell(scores: Scores, name: str) -> str:
    low, high = scores.intervals[name]
    return f"{shown(name, getattr(scores, name))}  ({shown(name, low)} to {shown(name, high)})"
