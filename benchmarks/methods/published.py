"""Draw and write everything from the records: ``make methods-table``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.methods.__main__ import RESULTS
from benchmarks.methods.comparison_frame import CHANCE, comparison_frame, failures, recorded_rows
from benchmarks.methods.picture import draw_costs
from benchmarks.methods.printed_tables import answers_text, defaults_text, failures_text, front_table, task_table
from benchmarks.methods.questions import answers, by_data_set
from benchmarks.methods.seed_differences import Cell
from benchmarks.methods.table_ranks import draw_ranks, table_ranks
from benchmarks.methods.tasks import TASKS

__all__ = ["TITLES", "publish"]

TITLES = {
    "fashion-mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "newsgroups": "20 Newsgroups",
    "newsgroups-1000": "20 Newsgroups, 1,000 articles",
    "newsgroups-long": "20 Newsgroups, trained for too long",
    "clinc150": "CLINC150",
    "tables": "22 tables",
}
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


def publish(results: Path) -> None:
    """Write the scores of all methods, a table for each data set, the answers, and the pictures."""
    rows = recorded_rows(results)
    if not rows:
        raise SystemExit(f"There are no records in {results}. Run: python -m benchmarks.methods fashion-mnist")
    frame = comparison_frame(rows)
    scores = frame.drop(columns=[column for column in frame if str(column).startswith(CHANCE)])
    scores.to_csv(results / "scores.csv", index=False, float_format="%.6g")
    parts = by_data_set(frame)
    for name, part in parts.items():
        folder = results / name
        folder.mkdir(exist_ok=True)
        title = TASKS[name].title if name in TASKS else "Tables, a perceptron"
        (folder / "table.txt").write_text(task_table(part, title), encoding="utf-8")
    found = answers(frame)
    texts = {
        "front": front_table(frame, TITLES),
        "answers": answers_text(found, TITLES),
        "defaults": defaults_text(frame, TITLES),
        "failures": failures_text(failures(rows)),
    }
    for name, text in texts.items():
        (results / f"{name}.txt").write_text(text, encoding="utf-8")
    told = [each.to_dict() for each in found]
    (results / "answers.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    drawn = {name: TASKS[name].title for name in _ON_FIRST_PICTURE if name in parts}
    if drawn:
        draw_costs(frame, drawn, results / "costs.png")
    if "tables" in parts and parts["tables"]["task"].nunique() > 2:
        for score in ("nll", "ece"):
            draw_ranks(table_ranks(parts["tables"], score, _RANKED), score.upper(), results / f"ranks-{score}.png")


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.methods.published", description=__doc__)
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the records are, and the results go")
    publish(parser.parse_args().folder)


if __name__ == "__main__":
    _main()
