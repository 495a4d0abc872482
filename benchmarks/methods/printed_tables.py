"""The comparison in print: a table for each data set, one table of the methods that matter, the answers and the defaults."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pandas as pd

from benchmarks.methods.comparison_frame import label, reference_of
from benchmarks.methods.questions import ABOUT_FOUR, ABOUT_ONE, Answer, by_data_set, chosen_by_validation, has_both_bases
from benchmarks.methods.seed_differences import Cell, ScoreDifference, difference, differences_from

__all__ = ["MATTER", "answers_text", "defaults_text", "failures_text", "front_table", "task_table"]

MATTER: tuple[Cell, ...] = (
    ("plain", "fnn", "plain"),
    ("plain", "fnn", "temperature"),
    ("plain", "ca-fnn", "best"),
    ("plain", "bnn", "best"),
    ("plain", "ca-bnn", "best"),
    ("regularised", "fnn", "best"),
    ("regularised", "mc-dropout", "best"),
    ("regularised", "laplace", "best"),
    ("regularised", "warm-mean-field", "best"),
    ("regularised", "ensemble", "best"),
    ("regularised", "mixture", "best"),
    ("plain", "logistic-regression", "best"),
    ("plain", "boosted-trees", "best"),
)
_COLUMNS = {
    "accuracy": "accuracy %", "nll": "NLL", "ece": "ECE %", "smooth_ece": "smooth %", "brier": "Brier", "aurc": "AURC",
    "set_size": "set size", "nll_shift5": "NLL shift", "ece_shift5": "ECE shift", "auroc_entropy": "outsiders",
    "people_kl": "people",
}  # fmt: skip
_APART = ("newsgroups-1000", "newsgroups-long")  # of the calibration term alone
_PERCENT = ("accuracy", "ece", "smooth_ece", "ece_shift5")
_WIDTH = 128


def task_table(part: pd.DataFrame, title: str) -> str:
    """Means over seeds (and tables) of every score, plain and with the best scaling, the lowest NLL first."""
    reference = reference_of(part)
    found = [tuple(map(str, cell)) for cell in part[["base", "method", "way"]].drop_duplicates().to_numpy()]
    cells: list[Any] = [cell for cell in found if cell[2] in ("plain", "best") or cell == reference]
    gaps = differences_from(part, "nll", [cell for cell in cells if cell != reference], reference)
    columns = {name: shown for name, shown in _COLUMNS.items() if name in part and part[name].notna().any()}
    by_cell = part.groupby(["base", "method", "way"])
    means = by_cell[[*columns, "cost", "prediction", "passes"]].mean().loc[cells].sort_values("nll")
    trained = by_cell.size()
    tables, seeds = part["task"].nunique(), part.groupby("task")["seed"].nunique().max()
    over = f"{tables} tables and {seeds} seeds of each" if tables > 1 else f"{seeds} seeds"
    lines = [
        f"{title}: means over {over}, the lowest NLL first",
        f"differences: from {label(*reference)}, with 95 % intervals that hold together for all {len(gaps)}",
        "",
        f"{'':<56}{'difference in NLL':>30}"
        + "".join(f"{shown:>11}" for shown in columns.values())
        + f"{'cost':>8}{'passes':>8}{'prediction':>12}{'trained':>9}",
    ]
    for key, (_, row) in zip(means.index.to_list(), means.iterrows(), strict=True):
        gap = str(gaps[key]) if key in gaps else "–"
        values = "".join(f"{_shown(name, row[name]):>11}" for name in columns)
        prediction = "–" if pd.isna(row["prediction"]) else f"{row['prediction']:.1f}×"
        lines.append(
            f"{label(*key):<56}{gap:>30}{values}{row['cost']:>7.1f}×{row['passes']:>8.0f}{prediction:>12}{trained[key]:>9}"
        )
    return "\n".join(lines) + "\n"


def _shown(name: str, value: float) -> str:
    return "–" if pd.isna(value) else f"{value * 100:.2f}" if name in _PERCENT else f"{value:.4f}"


def front_table(frame: pd.DataFrame, titles: dict[str, str]) -> str:
    """The methods that matter on every data set: NLL, ECE and cost; a mark where NLL is clearly lower or higher."""
    parts = {name: part for name, part in by_data_set(frame).items() if name in titles and name not in _APART}
    blocks = {name: _front_block(part) for name, part in parts.items()}
    cells = [cell for cell in MATTER if any(cell in block for block in blocks.values())]
    head = f"{'':<42}" + "".join(f"{titles[name]:^23}" for name in parts)
    lines = [head.rstrip(), f"{'':<42}" + "".join(f"{'NLL':>9}{'ECE %':>7}{'cost':>7}" for _ in parts)]
    lines += [
        f"{label(*cell):<42}" + "".join(block.get(cell, f"{'–':>9}{'–':>7}{'–':>7}") for block in blocks.values())
        for cell in cells
    ]
    return "\n".join(lines) + "\n"


def _front_block(part: pd.DataFrame) -> dict[Cell, str]:
    known = set(map(tuple, part[["base", "method", "way"]].drop_duplicates().to_numpy()))
    cells = [cell for cell in MATTER if cell in known]
    reference = reference_of(part)
    others = [cell for cell in cells if cell != reference]
    gaps = differences_from(part, "nll", others, reference)
    means = part.groupby(["base", "method", "way"])[["nll", "ece", "cost"]].mean()
    told: dict[Cell, str] = {}
    for cell in cells:
        mark = {-1: "▼", 0: " ", 1: "▲"}[gaps[cell].clearly if cell in gaps else 0]
        nll, ece, cost = (float(means.loc[cell, name]) for name in ("nll", "ece", "cost"))  # type: ignore[arg-type]
        told[cell] = f"{nll:>8.3f}{mark}{100 * ece:>7.1f}{f'{cost:.1f}×' if cost else '–':>7}"
    return told


def answers_text(found: Sequence[Answer], titles: dict[str, str]) -> str:
    """Questions, a sentence for each data set, and the differences behind it."""
    lines: list[str] = []
    for question, group in groupby(found, key=lambda each: each.question):
        lines += ["", question]
        for answer in group:
            lines += textwrap.wrap(
                f"{titles[answer.data]}: {answer.sentence}", _WIDTH, initial_indent="  ", subsequent_indent="    "
            )
            lines += [
                f"      {name}: {each}"
                for name, each in answer.differences.items()
                if each.clearly or len(answer.differences) <= 6
            ]
    return "\n".join(lines[1:]) + "\n"


def failures_text(failed: list[dict[str, object]]) -> str:
    """A line for each training that failed."""
    if not failed:
        return "No training failed.\n"
    lines = [f"{each['task']}, {each['base']}, {each['method']}, seed {each['seed']}: {each['error']}" for each in failed]
    return "\n".join([f"{len(failed)} trainings failed:", *lines]) + "\n"


def defaults_text(frame: pd.DataFrame, titles: dict[str, str]) -> str:
    """The methods that validation scores choose, and what the test says of them."""
    lines = ["Chosen by the mean rank of validation NLL over data sets; test scores are the check."]
    for trainings in (ABOUT_ONE, ABOUT_FOUR):
        best, ranks = chosen_by_validation(frame, trainings)
        rest = "; ".join(f"{label(*cell)} {rank:.1f}" for cell, rank in list(ranks.items())[:6])
        lines += ["", f"At most {trainings:g} plain trainings: {label(*best)}", f"  mean ranks: {rest}"]
        for name, part in by_data_set(frame).items():
            reference = reference_of(part)
            if best == reference or not has_both_bases(part):
                continue
            told: dict[str, ScoreDifference] = {
                score: difference(part, score, best, reference, comparisons=2) for score in ("nll", "ece")
            }
            if told["nll"].pairs:
                both = "; ".join(f"{score.upper()} {each}" for score, each in told.items())
                lines.append(f"  test, less {label(*reference)}, {titles[name]}: {both}")
    return "\n".join(lines) + "\n"
