"""`calibayes predict` on a file that is larger than the memory it takes: time and peak memory with one process and with two."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.report import Report
from calibayes.files import train

__all__ = ["WHAT", "predicted", "section", "write_table"]

WHAT = "calibayes predict on a long table, whole commands with their start"
_ROWS, _QUICK_ROWS, _TRAINING_ROWS, _CHUNK_ROWS = 10_000_000, 20_000, 2_000, 100_000
_METHODS = {"logistic-regression": 1, "fnn": 1, "boosted-trees": 50}  # with one row of so many: trees take long
_PROCESSES = (1, 2)
_ENDINGS = (".csv", ".parquet")
_LOOK = 0.1  # seconds between two looks at the memory


def section(report: Report, *, quick: bool = False, rows: int | None = None) -> None:
    """Measure and tell.

    Args:
        report: where it is told.
        quick: a small table, to see that it runs.
        rows: of the table.
    """
    count = rows or (_QUICK_ROWS if quick else _ROWS)
    methods = ["logistic-regression"] if quick else list(_METHODS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        learned = write_table(folder / "train.csv", _TRAINING_ROWS)
        report.tell("\ntables of 12 columns; five members of each method")
        memory = f"{'memory: first':>16}{'others, each':>14}"
        size = f"{'rows':>12}{'MB':>7}"
        report.tell(f"  {'':<22}{size}  {'output':<9}{'processes':>9}{'time':>11}{'rows per s':>12}{'as fast':>9}{memory}")
        for method in methods:
            settings: dict[str, Any] = {"epochs": 2} if method == "fnn" else {}
            train(learned, target="kind", scheme=method, **settings).model.save(folder / "model")
            source = write_table(folder / "long.csv", count // _METHODS[method])
            for ending in _ENDINGS:
                _tell(report, method, ending, folder, source, count // _METHODS[method])


def _tell(report: Report, method: str, ending: str, folder: Path, source: Path, rows: int) -> None:
    found = {count: predicted(folder / "model", source, folder / f"out{ending}", count) for count in _PROCESSES}
    base = found[_PROCESSES[0]]
    if len({each["sha256"] for each in found.values()}) > 1:
        raise RuntimeError(f"{method}, {ending}: the output depends on the number of processes.")
    megabytes = source.stat().st_size / 1e6
    report.record[f"{method}, {ending}"] = {
        "rows": rows,
        "MB": megabytes,
        **{str(count): each for count, each in found.items()},
    }
    for count, each in found.items():
        speed = f"{each['seconds']:9.1f} s{rows / each['seconds']:12,.0f}{base['seconds'] / each['seconds']:8.2f}x"
        others = f"{each['workers'] / 1e6:11,.0f} MB" if each["workers"] else f"{'–':>14}"
        size = f"{rows:12,}{megabytes:7,.0f}"
        report.tell(f"  {method:<22}{size}  {ending:<9}{count:9}{speed}{each['first'] / 1e6:13,.0f} MB{others}")


def predicted(model: Path, source: Path, out: Path, processes: int) -> dict[str, Any]:
    """Run the command, and return its seconds, peak memory (of the first process, and of the largest other) and output."""
    begin = time.perf_counter()
    process = psutil.Popen(
        [sys.executable, "-m", "calibayes", "predict", model, source, "-o", out, "--workers", str(processes)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    first = workers = 0
    while process.poll() is None:
        first = max(first, _peak(process.pid))
        workers = max([workers, *(_peak(child.pid) for child in _children(process))])
        time.sleep(_LOOK)
    seconds = time.perf_counter() - begin
    if process.returncode:
        raise RuntimeError(process.stderr.read())
    with out.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"seconds": seconds, "first": first, "workers": workers, "sha256": digest}


def _children(process: psutil.Popen) -> list[psutil.Process]:
    try:
        return list(process.children())
    except psutil.Error:  # it has just ended
        return []


def _peak(pid: int) -> int:
    """Return the most bytes that a process has had in memory so far; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def write_table(path: Path, rows: int) -> Path:
    """Write numbers, a category, a day and a class that depends on them; more than 100,000 rows are those again."""
    generator = np.random.default_rng(0)
    chunk = min(rows, _CHUNK_ROWS)
    kinds = generator.integers(3, size=chunk)
    numbers = generator.normal(size=(chunk, 8)) + kinds[:, None]
    colours = (kinds + generator.integers(2, size=chunk)) % 3
    days = generator.integers(1, 28, size=chunk)
    lines = [
        f"r{place},{','.join(f'{value:.4f}' for value in numbers[place])},{('red', 'green', 'blue')[colours[place]]},"
        f"2024-03-{days[place]:02},{'abc'[kinds[place]]}\n"
        for place in range(chunk)
    ]
    with path.open("w", encoding="utf-8") as file:
        file.write(f"id,{','.join(f'x{place}' for place in range(8))},colour,day,kind\n")
        for begin in range(0, rows, chunk):
            file.writelines(lines[: rows - begin])
    return path
