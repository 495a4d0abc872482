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
    """The seconds that one call took in every repeat."""

    repeats: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(self.repeats)

    def over(self, baseline: Timing) -> float:
        """The median ratio to a baseline, each repeat to that of the same turn."""
        return statistics.median(own / base for own, base in zip(self.repeats, baseline.repeats, strict=True))


def interleaved(runs: Mapping[str, Callable[[], object]], *, repeats: int, least: float = 0.05) -> dict[str, Timing]:
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
    return {name: Timing(tuple(times[name])) for name in names}


def peak_memory(setup: str, run: str) -> int:
    """Bytes by which a fresh process's peak memory lies above what it holds after ``setup``.

    ``run`` must need more than the imports did at their own peak (some hundred megabytes).
    """
    code = (
        f"import resource, psutil\n{setup}\n"
        "before = psutil.Process().memory_info().rss\n"
        f"{run}\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(done.stdout)
