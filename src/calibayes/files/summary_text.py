"""The summary that is printed after a training on a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from calibayes.crossfit import Attempt
from calibayes.crossfit.selection import row_losses
from calibayes.files.training import Trained
from calibayes.metrics import Scores
from calibayes.metrics.score_table import shown
from calibayes.report.confidence_verdict import verdict
from calibayes.wording import counted, percent
from calibayes.wording import shown as quoted

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["attempts_table", "closing_words", "opening_words", "scores_table", "scores_title", "warnings_about_scores"]

_SHOWN = ("accuracy", "nll", "brier", "ece")
_FEW = 200
_SMALL_FOLD = 100  # rows: with fewer, to stop by them gains more than an average of members does
_CLEAR = 2.0  # standard errors
_FEW_GROUPS = 0.9  # of the rows: with fewer groups, intervals are noticeably too narrow
_SMALLEST = 1e-12


def opening_words(trained: Trained) -> str:
    """Say which method was taken, and how far its confidence can be trusted."""
    best, others = trained.selection.best, trained.selection.attempts
    complete = [each for each in others if each.result == "complete" and each is not best]
    lines = [f"{_capital(best.title)}{_reason(best, complete, len(others))}"]
    if trained.selection.interrupted:
        lines[0] += " Stopped before all methods were tried."
    return "\n".join([*lines, *_cut_short(trained), *warnings_about_scores(trained), verdict(trained.scores, None).text])


def _cut_short(trained: Trained) -> list[str]:
    """Name methods that were ahead of the one taken when their time was up, and the budget that they need."""
    selection, targets = trained.selection, trained.data.targets.numpy()
    best, lines = row_losses(selection.best.predictions(), targets), []
    for each in selection.attempts:
        own = row_losses(each.predictions(), targets) if each.result == "too slow" else best
        if np.nanmean(own - best) < 0:
            total = sum(other.seconds for other in selection.attempts) + len(trained.plan.folds) * each.seconds
            lines.append(
                f"{_capital(each.title)} was ahead of it after one fold, but would not have been done in time: try --budget "
                f"{np.ceil(1.2 * total / 60):.0f}, or --method."
            )
    return lines


def warnings_about_scores(trained: Trained) -> tuple[str, ...]:
    """Warn of what scores and verdict do not show: nothing learnt, or no better decisions, and rows that belong together.

    A classifier that has learnt nothing has a high accuracy where one class is frequent, and no calibration error.
    """
    return (*_beside_frequencies(trained), *_other_choices(trained), *_dependence(trained))


def _beside_frequencies(trained: Trained) -> tuple[str, ...]:
    """Compare NLL and accuracy with those of the training rows' class frequencies."""
    probs, labels = trained.held_out[:2]
    counts = np.bincount(np.delete(trained.data.targets.numpy(), trained.plan.test), minlength=len(trained.data.classes))
    own = -np.log(np.maximum(probs[np.arange(len(labels)), labels], _SMALLEST))
    constant = -np.log(counts / counts.sum())[labels]
    more_right = (probs.argmax(1) == labels).astype(float) - (labels == counts.argmax())
    if _clearly_positive(more_right):
        return ()
    if _clearly_positive(constant - own):
        frequent = quoted(trained.data.classes[int(counts.argmax())])
        right = percent(float((labels == counts.argmax()).mean()))
        return (
            f"Its decisions are not clearly better than always {frequent}, which is right {right} of the time. Its "
            "probabilities are: act on them, for example with --costs.",
        )
    return (
        f"Not clearly better than guessing: the NLL is {own.mean():.4f}, that of the class frequencies alone "
        f"{constant.mean():.4f}.",
    )


def _other_choices(trained: Trained) -> tuple[str, ...]:
    """Say that some of the scored predictions are another method's."""
    count, taken = trained.held_out.other_choices, trained.selection.best
    if not count:
        return ()
    alone = f" For its own, run it with --method {taken.parts[0].learner.method}." if len(taken.parts) == 1 else ""
    return (
        f"In {count} of {counted(len(trained.plan.folds), 'fold')} the other rows preferred another method, which predicts the "
        f"fold: scores and verdict are of choosing in this way, and those of {taken.title} alone may be better.{alone}",
    )


def _dependence(trained: Trained) -> tuple[str, ...]:
    """Say that intervals count rows as independent, if many belong together."""
    rows, groups = len(trained.data.targets), trained.plan.groups
    if groups is None or groups > _FEW_GROUPS * rows:
        return ()
    what = "copies of others" if trained.settings.group is None else f"of one {quoted(trained.settings.group)}"
    return (
        f"Many rows are {what}: {rows:,} rows in {groups:,} groups. Intervals and p-values count each row as "
        "independent, so they look more certain than they are.",
    )


def attempts_table(trained: Trained) -> Table | None:
    """Return what was tried, simpler methods first, if there was more than one."""
    from rich import box
    from rich.table import Table

    attempts = trained.selection.attempts
    if len(attempts) < 2:
        return None
    held_out = "validation" if trained.held_out.rows == "test part" else "out-of-fold"
    table = Table(box=box.SIMPLE_HEAD)
    for head, justify in (("tried", "left"), (f"{held_out} NLL", "right"), ("seconds", "right"), ("", "left")):
        table.add_column(head, justify="right" if justify == "right" else "left")
    for each in attempts:
        what = "taken" if each is trained.selection.best else each.reason
        nll = "" if each.result == "failed" else f"{each.nll:.4f} ± {each.standard_error:.4f}"
        if each.result in ("behind", "too slow"):
            what = f"{what}; this is the NLL of {each.folds} of {counted(len(trained.plan.folds), 'fold')}"
        table.add_row(each.title, nll, f"{each.seconds:.0f}", what)
    return table


def scores_table(trained: Trained) -> Table:
    """Return the scores with intervals."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for head in ("", "score", f"{100 * (trained.scores.level or 0):g} % interval"):
        table.add_column(head, justify="right" if head else "left", no_wrap=True)
    for name in _SHOWN:
        table.add_row(trained.scores.title(name), *_cells(trained.scores, name))
    return table


def scores_title(trained: Trained) -> str:
    """Name the rows that the scores are of."""
    number, examples = trained.scores.n, trained.data.examples
    if trained.held_out.rows == "held-out folds":
        return f"Scores of {number:,} {examples}, each predicted by a member that was trained without it:"
    return f"Scores of {number:,} {examples} of the {trained.held_out.rows}, which training has not seen:"


def closing_words(trained: Trained) -> str:
    """Say how the scores came about, and how certain they are."""
    lines = list(trained.notes)
    members, temperature = len(trained.model.posterior.members), trained.model.temperature
    if trained.held_out.rows == "held-out folds":
        chosen = ", corrected for having chosen among methods" if len(trained.selection.attempts) > 1 else ""
        fewest = min(len(fold.held_out) for fold in trained.plan.folds)
        if fewest < _SMALL_FOLD:
            lines.append(
                f"The scores are of single members{chosen}. They may be too good: the rows of a fold, here only {fewest}, also "
                "decide when the training of the member that is scored on them stops, or how strongly it is penalised."
            )
        else:
            average = f"The model averages {members}, which is usually as good or better."
            lines.append(f"The scores are of single members{chosen}. {average}")
    if trained.scores.n < _FEW:
        lines.append(f"With {trained.scores.n} {trained.data.examples} these numbers are rough: see the intervals.")
    averages = f"the average of {counted(members, 'member')}" if members > 1 else "the probabilities of one member"
    compared = "; what was tried is compared without it" if len(trained.selection.attempts) > 1 else ""
    lines.append(f"Predictions are {averages} at a temperature of {temperature:.2f}, fitted on held-out rows{compared}.")
    return "\n".join(lines)


def _reason(best: Attempt, others: list[Attempt], tried: int) -> str:
    """Say why a method was taken, after its name."""
    if not others:
        return ": the only one that was trained to the end." if tried > 1 else "."
    ahead = min(others, key=lambda each: each.nll)
    if best.nll <= ahead.nll:
        tried_on = "what was tried" if len(others) + 1 == tried else "what was tried on all folds"
        return f": the lowest NLL of {tried_on}, {best.nll:.4f}; next: {ahead.title} ({ahead.nll:.4f})."
    return f": an NLL of {best.nll:.4f}, within noise of the lowest ({ahead.nll:.4f}, {ahead.title}), and simpler."


def _clearly_positive(values: npt.NDArray[np.float64]) -> bool:
    return len(values) > 1 and bool(values.mean() > _CLEAR * values.std(ddof=1) / np.sqrt(len(values)))


def _capital(title: str) -> str:
    return f"{title[0].upper()}{title[1:]}"


def _cells(scores: Scores, name: str) -> tuple[str, str]:
    low, high = scores.intervals[name]
    return shown(name, getattr(scores, name)), f"{shown(name, low)} to {shown(name, high)}"
