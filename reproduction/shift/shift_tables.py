"""The tables of an experiment under shift, for the terminal, for files and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.table import Table

from calibayes.recipes.compare.score_columns import ScoreColumn, values_summary
from calibayes.terminal import as_text
from reproduction.experiment import Experiment
from reproduction.experiment_results import PartResults, between
from reproduction.printed_tables import missing_note, plain_table
from reproduction.shift.people import PEOPLE_SCORES
from reproduction.shift.shift_scores import STEPS, WAYS, Way, by_seed, shift_names

__all__ = ["SCORE_COLUMNS", "people_rows", "severity_rows", "shift_summary", "shift_table_text"]

SCORE_COLUMNS = (
    ScoreColumn("nll", "NLL", 1, 3, "", "lowest"),
    ScoreColumn("ece", "ECE %", 100, 1, "", "lowest"),
    ScoreColumn("aurc", "AURC %", 100, 1, "", "lowest"),
    ScoreColumn("accuracy", "accuracy %", 100, 1, "", "highest"),
)
_ABOUT = (
    "Severity 0: the same test examples as they are. Others: mean over shifts. Mean ± standard deviation over seeds. + T: with "
    "a temperature fitted on unshifted validation examples. Against FNN + T: the difference at the highest severity, "
    "paired by seed, with a 95 % interval over seeds (Student's t); it is about other trainings, on the same test examples."
)
_ABOUT_PEOPLE = (
    "Mean over seeds of scores on unshifted test images, with the mean ends of 95 % bootstrap intervals over images. "
    "Agreement: the share of people who chose the class that the classifier decides for."
)
Rows = list[tuple[str, ...]]


def shift_table_text(experiment: Experiment, parts: Sequence[PartResults]) -> str:
    """The tables of an experiment as they are printed."""
    complete = [part for part in parts if part.results]
    title = f"{experiment.title} (preset {experiment.preset})"
    tables: list[Table | str] = []
    for column in SCORE_COLUMNS:
        heads, rows = severity_rows(complete, column)
        tables.append(plain_table(f"{title}: {column.title} by severity", heads, rows))
    tables.append(_ABOUT)
    heads, rows = people_rows(complete)
    if rows:
        tables += ["", plain_table("CIFAR-10H: distance from people's answers", heads, rows), _ABOUT_PEOPLE]
    return as_text(Group(*tables, *missing_note(parts)), width=200)


def severity_rows(parts: Sequence[PartResults], column: ScoreColumn) -> tuple[tuple[str, ...], Rows]:
    """The heads and rows of a score by severity; a temperature does not change decisions, so accuracy has one row a method."""
    plain = next((part for part in parts if part.settings[0].scheme == "fnn"), None)
    ways: list[Way] = ["plain"] if column.name == "accuracy" else list(WAYS)
    rows: Rows = []
    for part in parts:
        for way in ways:
            cells = [column.show(values_summary(list(by_seed(part, way, column.name, step).values()))) for step in STEPS]
            rows.append((part.name + WAYS[way], *cells, _against(part, way, plain, column)))
    return (*(str(step) for step in STEPS), "against FNN + T"), rows


def _against(part: PartResults, way: Way, plain: PartResults | None, column: ScoreColumn) -> str:
    if plain is None:
        return ""
    apart = between(part.name, by_seed(part, way, column.name, STEPS[-1]), by_seed(plain, "scaled", column.name, STEPS[-1]))
    value, low, high = (f"{column.scale * each:+.{column.digits}f}" for each in (apart.value, apart.low, apart.high))
    return f"{value} ({low} to {high})" if apart.seeds > 1 else value


def people_rows(parts: Sequence[PartResults]) -> tuple[tuple[str, ...], Rows]:
    """The heads and rows of the scores by people's answers, without rows where there are none."""
    rows: Rows = []
    for part in parts:
        if "people" not in part.results[0]["final"]:
            continue
        for way, suffix in WAYS.items():
            cells = []
            for score in PEOPLE_SCORES:
                value = part.final("people", way, score).mean()
                low, high = (_end(part, way, score, place) for place in (0, 1))
                cells.append(f"{value:.4f} ({low:.4f} to {high:.4f})")
            rows.append((part.name + suffix, *cells))
    return tuple(PEOPLE_SCORES.values()), rows


def _end(part: PartResults, way: Way, score: str, place: int) -> float:
    ends = [result["final"]["people"][way][f"{score}_interval"][place] for result in part.results]
    return float(sum(ends) / len(ends))


def shift_summary(parts: Sequence[PartResults]) -> list[dict[str, Any]]:
    """Each seed's scores under each shift, as numbers."""
    return [
        {
            "name": part.name,
            "seeds": [each.seed for each in part.settings],
            "settings": {name: value for name, value in part.settings[0].to_dict().items() if name != "seed"},
            "temperature": part.final("temperature").tolist(),
            "scores": {
                f"{way} {column.name}": {
                    shift or "all": [list(by_seed(part, way, column.name, step, shift).values()) for step in STEPS]
                    for shift in (None, *shift_names(part))
                }
                for way in WAYS
                for column in SCORE_COLUMNS
            },
            **({"people": [each["final"]["people"] for each in part.results]} if "people" in part.results[0]["final"] else {}),
        }
        for part in parts
        if part.results
    ]
