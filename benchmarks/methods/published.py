"""Draw and write everything from the records: ``make methods-table``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from benchmarks.methods.__main__ import RESULTS
from benchmarks.methods.comparison_frame import CHANCE, comparison_frame, failures, label, recorded_rows, reference_of
from benchmarks.methods.picture import draw_costs
from benchmarks.methods.questions import ABOUT_FOUR, ABOUT_ONE, answers, by_data_set, chosen_by_validation
from benchmarks.methods.seed_differences import Cell, differences_from
from benchmarks.methods.table_ranks import draw_ranks, table_ranks
from benchmarks.methods.tasks import TASKS

__all__ = ["publish", "task_table"]

_ON_FIRST_PICTURE = ("fashion-mnist", "newsgroups")
_RANKED: tuple[Cell, ...] = (
    ("plain", "fnn", "temperature"),
    ("regularised", "fnn", "best"),
    ("plain", "bnn", "best"),
    ("plain", "ca-bnn", "best"),
    ("regularised", "laplace", "best"),
    ("regularised", "ensemble", "best"),
    ("regularised", "mixture", "best"),
    ("plain", "boosted-trees", "best"),
)
_COLUMNS = {
    "accuracy": "accuracy", "nll": "NLL", "ece": "ECE %", "smooth_ece": "smooth %", "brier": "Brier", "aurc": "AURC",
    "set_size": "set size", "nll_shift5": "NLL shift", "ece_shift5": "ECE shift", "auroc_entropy": "outsiders",
}  # fmt: skip
_PERCENT = ("accuracy", "ece", "smooth_ece", "ece_shift5")


def publish(results: Path) -> None:
    """Write the scores of all methods, a table for each task, the answers, and the pictures."""
    rows = recorded_rows(results)
    if not rows:
        raise SystemExit(f"There are no records in {results}. Run: python -m benchmarks.methods fashion-mnist")
    frame = comparison_frame(rows)
    scores = frame.drop(columns=[column for column in frame if str(column).startswith(CHANCE)])
    scores.to_csv(results / "scores.csv", index=False, float_format="%.6g")
    texts = [
        task_table(part, TASKS[name].title if name in TASKS else "all tables") for name, part in by_data_set(frame).items()
    ]
    texts += [_failures(failures(rows)), _defaults(frame)]
    (results / "tables.txt").write_text("\n".join(texts), encoding="utf-8")
    told = [each.to_dict() for each in answers(frame)]
    (results / "answers.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    drawn = {name: TASKS[name].title for name in _ON_FIRST_PICTURE if (frame["task"] == name).any()}
    if drawn:
        draw_costs(frame, drawn, results / "costs.png")
    tables = by_data_set(frame).get("tables")
    if tables is not None and tables["task"].nunique() > 2:
        for score in ("nll", "ece"):
            draw_ranks(table_ranks(tables, score, _RANKED), score.upper(), results / f"ranks-{score}.png")


def task_table(part: pd.DataFrame, title: str) -> str:
    """Means over seeds (and tables) of every score, plain and with the best scaling, the lowest NLL first."""
    reference = reference_of(part)
    cells = [
        (base, method, way)
        for base, method, way in _cells(part)
        if way in ("plain", "best") or (base, method, way) == reference
    ]
    gaps = differences_from(part, "nll", [cell for cell in cells if cell != reference], reference)
    columns = {name: shown for name, shown in _COLUMNS.items() if name in part and part[name].notna().any()}
    means = part.groupby(["base", "method", "way"])[[*columns, "cost", "passes"]].mean().loc[cells].sort_values("nll")
    seeds = part.groupby("task")["seed"].nunique().max()
    lines = [
        f"{title}: means over {seeds} seeds",
        f"{'':<46}{'difference in NLL':>30}"
        + "".join(f"{shown:>11}" for shown in columns.values())
        + f"{'cost':>7}{'passes':>8}",
    ]
    for key, (_, row) in zip(means.index.to_list(), means.iterrows(), strict=True):
        gap = str(gaps[key]) if key in gaps else "—"
        values = "".join(
            f"{row[name] * (100 if name in _PERCENT else 1):>11.{2 if name in _PERCENT else 4}f}" for name in columns
        )
        lines.append(f"{label(*key):<46}{gap:>30}{values}{row['cost']:>6.1f}x{row['passes']:>8.0f}")
    return "\n".join(lines) + "\n"


def _cells(part: pd.DataFrame) -> list[Cell]:
    found = part[["base", "method", "way"]].drop_duplicates().to_numpy()
    return [(str(base), str(method), str(way)) for base, method, way in found]


def _failures(failed: list[dict[str, object]]) -> str:
    if not failed:
        return "No training failed.\n"
    lines = [f"{each['task']}, {each['base']}, {each['method']}, seed {each['seed']}: {each['error']}" for each in failed]
    return "\n".join([f"{len(failed)} trainings failed:", *lines]) + "\n"


def _defaults(frame: pd.DataFrame) -> str:
    lines = ["Chosen by validation NLL over data sets, before test scores are looked at"]
    for trainings in (ABOUT_ONE, ABOUT_FOUR):
        best, ranks = chosen_by_validation(frame, trainings)
        rest = ", ".join(f"{label(*cell)} {rank:.1f}" for cell, rank in list(ranks.items())[:6])
        lines.append(f"at most {trainings:g} plain trainings: {label(*best)} (mean ranks: {rest})")
    return "\n".join(lines) + "\n"


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.methods.published", description=__doc__)
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the records are, and the results go")
    publish(parser.parse_args().folder)


if __name__ == "__main__":
    _main()
