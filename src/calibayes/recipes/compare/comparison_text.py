"""The tables and notes of a comparison, computed from its numbers; what to do is in `advice`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from calibayes.recipes.compare.comparison import Comparison
from calibayes.recipes.compare.comparison_settings import Settings
from calibayes.recipes.compare.comparison_task import Task
from calibayes.recipes.compare.contenders import Contender, Entry
from calibayes.recipes.compare.difference_words import NAMES, difference_cells, size_words
from calibayes.recipes.compare.recommendation import LEVEL, NEGLIGIBLE, Differences
from calibayes.recipes.compare.score_columns import listed, score_table, weight
from calibayes.recipes.compare.split_table import SplitTable, TableColumn
from calibayes.wording import joined

__all__ = ["QUICK_WARNING", "above_table", "closing_words", "opening_words", "scores_table"]

QUICK_WARNING = "Trained in seconds on little data (--quick): the numbers only show what is measured."


def opening_words(task: Task, settings: Settings, workers: int) -> str:
    """Describe the data and the trainings."""
    return (
        f"{task.title}: {settings.train:,} {task.examples} to train, {settings.validation:,} to choose "
        f"on, {settings.test:,} to test.\n"
        f"{settings.trainings} trainings, {workers} at a time on one thread each; networks train for {settings.epochs} epochs."
    )


def scores_table(entries: Iterable[Entry], settings: Settings, task: Task) -> SplitTable:
    """The contenders' test scores side by side."""
    rows = [
        (str(entry.contender), [weight(entry.run.lam), weight(entry.run.beta), _calibration(entry)], entry.test)
        for entry in entries
    ]
    return score_table(settings, task.examples, ("", "λ", "β", "cali-\nbration"), rows)


def above_table(comparison: Comparison) -> SplitTable:
    """The difference of each contender's NLL from the lowest on validation examples, and the same on test examples."""
    verdict, leader = comparison.verdict, comparison.verdict.leader
    assert leader is not None
    interval, examples = f"{100 * LEVEL:g} % interval", comparison.task.examples
    heads = ("validation\nNLL", "above\nlowest", interval, "", "test:\nabove it", interval)
    rows: dict[str, list[str]] = {}
    for each in comparison.entries:
        nll = f"{comparison.validation.mean(each, 'nll'):.3f}"
        if each == leader:
            rows[str(each)] = [nll, "", "", "lowest", "", ""]
            continue
        chosen, checked = verdict.above[each], comparison.differences.between(each, leader)
        word = "clearly worse" if each in verdict.clearly_worse else "not clearly worse"
        rows[str(each)] = [nll, *difference_cells(chosen, "nll"), word, *difference_cells(checked, "nll")]
    columns = [TableColumn(head, [cells[place] for cells in rows.values()], left=not head) for place, head in enumerate(heads)]
    title = f"NLL above that of {leader}, the lowest on validation {examples}; test {examples} are the check"
    return SplitTable(title, TableColumn("", list(rows), left=True), columns)


def closing_words(comparison: Comparison) -> str:
    """Explain the tables."""
    settings, task, examples = comparison.settings, comparison.task, comparison.task.examples
    lines = []
    baselines = [str(each) for each in comparison.entries if each.baseline]
    if baselines:
        names = joined(baselines)
        lines.append(
            f"{names[0].upper()}{names[1:]}: of scikit-learn, calibrated by cross-validation on the training {examples}, which "
            "also chose the calibration shown (that of most seeds)."
        )
    lines += [
        f"Chosen by the lowest NLL on the validation {examples} (seed 0, without T): λ from {listed(settings.lams)} and "
        f"β from {listed(settings.betas)}.",
        f"+ T: a temperature, fitted on the validation {examples} for each training (mean shown), is applied. For their "
        "validation NLL, each fifth was scaled by a temperature fitted on the other four.",
        *_about_temperatures(comparison.entries, comparison.validation),
        *_better_elsewhere(comparison),
        "",
        *_about_intervals(comparison.differences, settings, task),
    ]
    lines += [QUICK_WARNING] if settings.is_quick else []
    lines.append("This is one network and one split of one data set: other data may rank the contenders differently.")
    return "\n".join(lines)


def _about_temperatures(entries: Iterable[Contender], validation: Differences) -> list[str]:
    """Say for which methods a temperature lowers the validation NLL: advice only where it does."""
    methods = list(dict.fromkeys(each.scheme for each in entries if not each.baseline))
    plain = {method: Contender(method, False) for method in methods}
    means = {method: [validation.mean(Contender(method, scaled), "nll") for scaled in (False, True)] for method in methods}
    lower = [str(plain[method]) for method, (before, after) in means.items() if after < before]
    others = [str(plain[method]) for method, (before, after) in means.items() if not after < before]
    lines = []
    if lower:
        lines.append(f"A temperature lowers the validation NLL of {joined(lower)}.")
    if others:
        lines.append(f"A temperature does not lower the validation NLL of {joined(others)}.")
    return lines


def _better_elsewhere(comparison: Comparison) -> list[str]:
    """Name the contenders with a clearly better ECE or accuracy on the test examples than the recommended one."""
    use, test = comparison.verdict.recommended, comparison.differences
    if use is None:
        return []
    lines = []
    for score, word, sign in (("ece", "lower", 1.0), ("accuracy", "higher", -1.0)):
        against = {each: test.between(use, each, score) for each in comparison.entries if each != use}
        others = [f"{each} by {size_words(gap, score)}" for each, gap in against.items() if gap.scaled(sign).above]
        if others:
            lines.append(
                f"Clearly {word} {NAMES[score]} than {use} on the test {comparison.task.examples}: {', '.join(others)}."
            )
        elif score == "ece" and against:
            lines.append(f"None has a clearly lower ECE than {use} on the test {comparison.task.examples}.")
    return lines


def _about_intervals(differences: Differences, settings: Settings, task: Task) -> list[str]:
    tests = f"{settings.validation:,} validation or {settings.test:,} test {task.examples}"
    chance = f"{differences.seeds} seeds and in {tests}" if differences.seeds > 1 else f"the {tests} only"
    lines = [
        f"Intervals: {100 * LEVEL:g} %, corrected for {differences.comparisons} comparisons (Bonferroni); "
        f"they cover the chance in {chance}. Clearly: the interval does not contain 0; clearly worse: it begins above "
        f"{NEGLIGIBLE:g}.",
        "Differences in ECE are corrected for what chance adds to an ECE, which is more for a small one.",
    ]
    if differences.seeds == 1:
        lines.append("One seed says nothing about the chance in training: another one may reverse the order.")
    elif differences.seeds == 2:
        lines.append("Two seeds say little about the chance in training, so the intervals are wide. More seeds: --seeds 8")
    return lines


def _calibration(entry: Entry) -> str:
    """What calibrates a contender: what cross-validation chose most often, the mean temperature, or nothing."""
    if entry.choices:
        most = Counter(choice.calibration for choice in entry.choices).most_common(1)[0][0]
        return "T by CV" if most == "temperature" else most
    return f"T = {sum(entry.temperatures) / len(entry.temperatures):.2f}" if entry.contender.scaled else "–"
