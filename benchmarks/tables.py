"""Tables read and evaluated before and after a change: two checkouts, a fresh process for each turn, turn by turn."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.before_after import RowError, verdict, worktree
from benchmarks.report import Report
from benchmarks.timing import Timing

__all__ = ["section"]

_ROOT = Path(__file__).parents[1]
_LONG, _WIDE, _QUICK_LONG, _QUICK_WIDE = (1_000_000, 12), (40, 20_000), (1_000, 12), (40, 50)
_REPEATS, _QUICK_REPEATS = 7, 2
_READ = "from calibayes.data.predictions import read_predictions as read"
_PREPARE = "from pathlib import Path; from calibayes.files import DataSettings; from calibayes.files.prepare import prepare"
# What is imported first, and what is timed: `path` is the table.
_ROWS = {
    "read": (_READ, "read(path)"),
    "read and evaluated": (
        f"{_READ}; import calibayes",
        "t = read(path); calibayes.evaluate(t.probs, t.targets, intervals=False)",
    ),
    "prepared for training": (_PREPARE, "prepare(Path(path), DataSettings(target='label'))"),
}


def section(report: Report, *, before: str, quick: bool = False) -> None:
    """Measure and tell.

    Args:
        report: where it is told.
        before: a revision, which is checked out into a temporary worktree.
        quick: tiny tables, twice each, to see that it runs.
    """
    with ExitStack() as stack:
        old = stack.enter_context(worktree(before))
        folder = Path(stack.enter_context(TemporaryDirectory()))
        report.tell(f"\n  {'':<56}{'before':>12}{'after':>12}{'ratio':>9}  {'quartiles':>15}")
        for shape in (_QUICK_LONG, _QUICK_WIDE) if quick else (_LONG, _WIDE):
            path = _table(folder / f"{shape[0]}x{shape[1]}.csv", *shape)
            for what, (setup, run) in _ROWS.items():
                _tell(report, f"{shape[0]:,} rows × {shape[1]:,} columns, {what}", (old, _ROOT), path, setup, run, quick)


def _tell(report: Report, name: str, trees: tuple[Path, Path], path: Path, setup: str, run: str, quick: bool) -> None:
    times: tuple[list[float], list[float]] = ([], [])
    for repeat in range(_QUICK_REPEATS if quick else _REPEATS):
        for index in (0, 1) if repeat % 2 == 0 else (1, 0):
            times[index].append(_seconds(trees[index], path, setup, run))
    first, second = (Timing(tuple(each)) for each in times)
    ratio, (low, high) = second.over(first), second.quartiles(first)
    report.record[name] = {"before": first.seconds, "after": second.seconds, "ratio": ratio, "quartiles": (low, high)}
    told = f"{first.seconds:10.2f} s{second.seconds:10.2f} s{ratio:8.2f}x  {f'{low:.2f} to {high:.2f}':>15}"
    report.tell(f"  {name:<56}{told}  {verdict(low, high)}".rstrip())


def _seconds(tree: Path, path: Path, setup: str, run: str) -> float:
    """Return the seconds that a fresh process of a checkout takes, without its imports."""
    code = f"import sys, time, pyarrow.csv\npath = sys.argv[1]\n{setup}\nbegin = time.perf_counter()\n{run}\n"
    code += "print(time.perf_counter() - begin)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
    )
    if done.returncode:
        raise RowError(f"{tree.name}: {done.stderr.strip().splitlines()[-1]}")
    return float(done.stdout)


def _table(path: Path, rows: int, columns: int) -> Path:
    """Write predictions: labels, and probabilities in all other columns."""
    generator = np.random.default_rng(0)
    classes = columns - 1
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(["label", *(f"p_{j}" for j in range(classes))]) + "\n")
        for begin in range(0, rows, 10_000):
            probs = generator.dirichlet(np.ones(classes), min(10_000, rows - begin))
            labels = generator.integers(0, 2, len(probs)).tolist()
            file.writelines(f"{label},{','.join(map(repr, row))}\n" for label, row in zip(labels, probs.tolist(), strict=True))
    return path
