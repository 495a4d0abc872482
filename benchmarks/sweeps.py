"""(f) How much faster a sweep is with a worker for each of two cores."""

from __future__ import annotations

import tempfile
import time

import calibayes as cb
from benchmarks.report import Report
from calibayes.recipes.fashion import fashion_trial

__all__ = ["WHAT", "section"]

WHAT = "times of whole sweeps, with the start of their workers"
_TRIALS, _EPOCHS = 4, 2
_WAYS = {"1 worker of 1 thread": (1, 1), "2 workers of 1 thread": (2, 1)}


def section(report: Report) -> None:
    """Measure and tell."""
    report.tell(f"\n(f) a sweep of {_TRIALS} trainings of CA-BNN on images of clothes, {_EPOCHS} epochs each")
    seconds = {name: _swept(*way) for name, way in _WAYS.items()}
    base = seconds["1 worker of 1 thread"]
    report.tell(f"    {'':<24}{'time':>10}{'as fast':>12}")
    for name, found in seconds.items():
        report.tell(f"    {name:<24}{found:8.1f} s{base / found:11.2f}x")
    report.record["sweep"] = {name: {"seconds": found, "speed": base / found} for name, found in seconds.items()}


def _swept(workers: int, threads: int) -> float:
    """Seconds of a sweep into an empty folder."""
    settings = cb.grid(scheme="ca-bnn", lam=10.0, beta=0.1, epochs=_EPOCHS, seed=range(_TRIALS))
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        found = cb.sweep(fashion_trial, settings, folder, workers=workers, threads=threads, progress=False)
        took = time.perf_counter() - begin
    if found.failed:
        raise RuntimeError(found.failed[0].error)
    return took
