"""Interleaved repeats: what is compared runs turn by turn, so a slow moment of the machine hits all alike."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["ChildFailedError", "Timing", "calls_per_turn", "interleaved", "peak_memory", "turns"]


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
        return statistics.median(self._ratios(baseline))

    def quartiles(self, baseline: Timing) -> tuple[float, float]:
        """Between which ratios to a baseline the middle half of the repeats lies."""
        low, _, high = statistics.quantiles(self._ratios(baseline), n=4, method="inclusive")
        return low, high

    def _ratios(self, baseline: Timing) -> list[float]:
        return [own / base for own, base in zip(self.repeats, baseline.repeats, strict=True)]


def interleaved(runs: Mapping[str, Callable[[], object]], *, repeats: int, least: float = 0.05) -> dict[str, Timing]:
    """Time every run ``repeats`` times, turn by turn; a turn calls it as often as ``least`` seconds take."""
    return turns(runs, {name: calls_per_turn(run, least) for name, run in runs.items()}, repeats=repeats)


def calls_per_turn(run: Callable[[], object], least: float = 0.05) -> int:
    """How many calls ``least`` seconds take, once it is warm; what takes far longer is called only once to find out."""
    first = _seconds(run, 1)
    return 1 if first > 20 * least else max(1, round(least / max(_seconds(run, 1), 1e-7)))


def turns(runs: Mapping[str, Callable[[], object]], calls: Mapping[str, int], *, repeats: int) -> dict[str, Timing]:
    """Time every run ``repeats`` times, turn by turn, with its number of calls in each."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    gc.disable()
    try:
        for repeat in range(repeats):
            gc.collect()
            for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
                times[name].append(_seconds(runs[name], calls[name]) / calls[name])
    finally:
        gc.enable()
    return {name: Timing(tuple(times[name])) for name in names}


def peak_memory(setup: str, run: str, *, bound: int | None = None, seconds: float | None = None) -> int:
    """Bytes by which a fresh process's peak memory in ``run`` lies above what it holds after ``setup``; on Linux only.

    With a ``bound`` on what ``run`` may allocate, in bytes, or on its ``seconds``, a run that needs more is an error.

    The peak is that of the process's own memory since ``setup``: what the system calls the largest resident set of a process
    starts at that of the process which started it.
    """
    allowed = f"resource.setrlimit(resource.RLIMIT_AS, (held('VmSize') + {bound},) * 2)\n" if bound else ""
    code = (
        "import resource\n"
        "def held(what):\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(what))\n"
        f"{setup}\n{allowed}"
        "print(5, file=open('/proc/self/clear_refs', 'w'), flush=True)\n"
        "before = held('VmRSS')\n"
        f"{run}\n"
        "print(held('VmHWM') - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=seconds)
    if done.returncode:
        raise ChildFailedError(done.stderr.strip().splitlines()[-1] if done.stderr else f"exit code {done.returncode}")
    return int(done.stdout)


class ChildFailedError(RuntimeError):
    """What another process said last."""


def _seconds(run: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return time.perf_counter() - start
