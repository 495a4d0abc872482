"""The text of a comparison, computed from its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from rich import box
from rich.table import Table

from calibayes.recipes.compare.comparison_settings import Settings
from calibayes.recipes.compare.comparison_task import Task
from calibayes.recipes.compare.contenders import Contender, Entry
from calibayes.recipes.compare.difference_interval import Estimate
from calibayes.recipes.compare.recommendation import LEVEL, NEGLIGIBLE, Differences, Recommendation
from calibayes.recipes.compare.score_columns import COLUMNS, listed, score_table, weight

__all__ = ["QUICK_WARNING", "above_table", "closing_words", "opening_words", "scores_table"]

_COLUMN = {column.name: column for column in COLUMNS}
_WIDE = 0.05  # nats: if a difference may be as large as this, nothing is decided
QUICK_WARNING = "Trained in seconds on little data (--quick): the numbers only show what is measured."
_NAME = {"nll": "NLL", "ece": "ECE", "accuracy": "accuracy", "brier": "Brier"}


def opening_words(task: Task, settings: Settings, workers: int) -> str:
    """Describe the data and the trainings."""
    return (
        f"{task.title}: {settings.train:,} {task.examples} to train, {settings.validation:,} to choose "
        f"λ and β, {settings.test:,} to test.\n"
        f"{settings.trainings} trainings of {settings.epochs} epochs, {workers} at a time on one thread each."
    )


def scores_table(entries: Iterable[Entry], settings: Settings, task: Task) -> Table:
    """The contenders' test scores side by side."""
    rows = [
        (str(entry.contender), [weight(entry.run.lam), weight(entry.run.beta), _temperature(entry)], entry.test)
        for entry in entries
    ]
    return score_table(settings, task.examples, ("", "λ", "β", "T"), rows)


def above_table(verdict: Recommendation) -> Table:
    """The difference of each contender's NLL from the lowest, and a verdict."""
    table = Table(title=f"NLL above the lowest, {verdict.leader}'s", box=box.SIMPLE_HEAD, title_style="bold")
    for title in ("", "by", f"{100 * LEVEL:g} % interval", "p", ""):
        table.add_column(title, justify="left" if not title else "right", no_wrap=True)
    worse = verdict.clearly_worse
    for each, difference in verdict.above.items():
        by, ends = _numbers(difference, "nll")
        p = f"{difference.p_value:.3f}" if difference.p_value >= 0.0005 else "< 0.001"
        table.add_row(str(each), by, ends, p, "clearly worse" if each in worse else "not clearly worse")
    return table


def closing_words(verdict: Recommendation, differences: Differences, settings: Settings, task: Task) -> str:
    """Recommend a contender, with the differences and their intervals."""
    choice = f"λ from {listed(settings.lams)} and β from {listed(settings.betas)}"
    lines = [
        f"Chosen by the lowest NLL on the validation {task.examples} (seed 0, without T): {choice}.",
        f"+ T: with a temperature T, fitted on the validation {task.examples} for each training (mean shown).",
        "",
        *_answer(verdict, differences),
        "",
        *_about_intervals(differences, settings, task),
    ]
    lines += [QUICK_WARNING] if settings.is_quick else []
    lines.append("This is one network and one split of one data set: other data may rank the contenders differently.")
    return "\n".join(lines)


def _answer(verdict: Recommendation, differences: Differences) -> list[str]:
    best, use = verdict.leader, verdict.recommended
    if best is None or use is None:
        return [
            "No answer: every contender gives some true class a probability of zero, which makes its NLL infinite.",
            "Train for fewer epochs or with a lower learning rate, and compare again.",
        ]
    digits = _COLUMN["nll"].digits
    nll = {each: f"{differences.mean(each, 'nll'):.{digits}f}" for each in (best, use)}
    undecided = _undecided(verdict, best, use)
    simpler = ", ".join(map(str, takewhile(lambda each: each != use, differences.values)))
    if undecided > _WIDE:
        lines = [
            f"No answer yet: nothing is clearly worse than the lowest NLL, {best}'s ({nll[best]}), and differences "
            f"of up to {undecided:.{digits}f} are possible.",
            f"More seeds or test examples would tell; until then start with {use}, the simplest.",
        ]
    elif use == best:
        reason = f"it has the lowest NLL ({nll[use]})"
        reason += f", and the simpler ones are clearly worse: {simpler}." if simpler else ", and nothing here is simpler."
        lines = [f"Use {use}: {reason}"]
    else:
        reason = f"its NLL ({nll[use]}) is not clearly worse than the lowest, {best}'s ({nll[best]}):"
        lines = [f"Use {use}: {reason} {_size(verdict.above[use], 'nll')} apart."]
        lines.append(f"The simpler ones are clearly worse: {simpler}." if simpler else "Nothing here is simpler.")
    if verdict.gain is not None:
        plain = next(iter(differences.values))
        lines.append(f"Against {plain}: {', '.join(_changed(verdict.gain[score], score) for score in _NAME)}.")
    for score, word in (("ece", "lower"), ("accuracy", "higher")):
        others = [f"{each} by {_size(difference, score)}" for each, difference in verdict.better[score].items()]
        if others:
            lines.append(f"Clearly {word} {_NAME[score]} than {use}: {', '.join(others)}.")
    if not verdict.better["ece"]:
        lines.append(f"None has a clearly lower ECE than {use}.")
    return lines


def _undecided(verdict: Recommendation, best: Contender, use: Contender) -> float:
    """The possible gain of another choice than the recommended one, if nothing is clearly worse; else 0."""
    if verdict.clearly_worse or not verdict.above:
        return 0.0
    return max(-each.low for each in verdict.above.values()) if use == best else verdict.above[use].high


def _about_intervals(differences: Differences, settings: Settings, task: Task) -> list[str]:
    tests = f"{settings.test:,} test {task.examples}"
    chance = f"{differences.seeds} seeds and {tests}" if differences.seeds > 1 else f"the {tests} only"
    lines = [
        f"Intervals: {100 * LEVEL:g} %, corrected for {differences.comparisons} comparisons (Bonferroni); "
        f"they cover the chance in {chance}. Clearly: the interval does not contain 0; clearly worse: it begins above "
        f"{NEGLIGIBLE:g}.",
        "Differences in ECE are corrected for what chance adds to an ECE, which is more for a small one.",
    ]
    if differences.seeds == 1:
        lines.append("One seed says nothing about the chance in training: another one may reverse the order.")
        lines.append("Do not decide by it. More seeds: --seeds 8")
    elif differences.seeds == 2:
        lines.append("Two seeds say little about the chance in training, so the intervals are wide. More seeds: --seeds 8")
    return lines


def _changed(difference: Estimate, score: str) -> str:
    """Describe a change, such as "ECE lower by 1.2 points (0.3 to 2.1)"."""
    if difference.value == 0 and not (difference.above or difference.below):
        return f"{_NAME[score]} the same"
    word = "higher" if difference.value > 0 else "lower"
    surely = "" if difference.above or difference.below else ", which may be chance"
    return f"{_NAME[score]} {word} by {_size(difference, score)}{surely}"


def _size(difference: Estimate, score: str) -> str:
    """Write a difference without its sign."""
    by, ends = _numbers(difference.scaled(-1.0 if difference.value < 0 else 1.0), score)
    unit = " points" if _COLUMN[score].scale == 100 else ""
    return f"{by}{unit} ({ends})"


def _numbers(difference: Estimate, score: str) -> tuple[str, str]:
    column = _COLUMN[score]
    value, low, high = (
        # Adding zero turns -0.000 into 0.000.
        f"{round(column.scale * number, column.digits) + 0.0:.{column.digits}f}"
        for number in (difference.value, difference.low, difference.high)
    )
    return value, f"{low} to {high}"


def _temperature(entry: Entry) -> str:
    return f"{sum(entry.temperatures) / len(entry.temperatures):.2f}" if entry.contender.scaled else "–"
