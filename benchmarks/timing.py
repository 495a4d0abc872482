"""Interleaved repeats: what is compared runs turn by turn, so a slow moment of the machine hits all alike."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["Timing", "interleaved", "peak_memory"]


@dataclass(frozen=True)
class Timing:
    """Median seconds of one call, and the median over repeats of the ratio to the baseline of the same repeat."""

    seconds: float
    ratio: float


def interleaved(
    runs: Mapping[str, Callable[[], object]], *, baseline: str, repeats: int, least: float = 0.05
) -> dict[str, Timing]:
    """Time every run ``repeats`` times, turn by turn; a turn calls it as often as ``least`` seconds take."""
    counts = {}
    for name, run in runs.items():
        run()
        start = time.perf_counter()
        run()
        counts[name] = max(1, round(least / max(time.perf_counter() - start, 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    gc.collect()
    gc.disable()
    try:
        for repeat in range(repeats):
            for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
                start = time.perf_counter()
                for _ in range(counts[name]):
                    runs[name]()
                times[name].append((time.perf_counter() - start) / counts[name])
    finally:
        gc.enable()
    return {
        name: Timing(
            statistics.median(times[name]),
            statistics.median(own / base for own, base in zip(times[name], times[baseline], strict=True)),
        )
        for name in names
    }


def peak_memory(setup: str, run: str) -> int:
    """Bytes by which ``run`` raises a fresh process's peak memory above what ``setup`` needed."""
    code = (
        f"import resource\n{setup}\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"{run}\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(done.stdout)
