"""What a run of a section prints and writes down: lines, numbers, the machine and the versions."""

from __future__ import annotations

import json
import platform
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

import calibayes
from benchmarks.timing import Timing

__all__ = ["RATIOS", "RESULTS", "Report", "machine", "ratios"]

RATIOS = "median ratios of interleaved repeats in one run"
RESULTS = Path(__file__).parents[1] / "results" / "benchmarks"


class Report:
    """The lines and the numbers of one section.

    Args:
        name: of the section.
        what: what its numbers are.
        command: what measures them, if it is not ``python -m benchmarks`` with the name.

    Attributes:
        lines: what has been printed.
        record: what goes into the JSON file beside it.
    """

    def __init__(self, name: str, what: str = RATIOS, command: str = "") -> None:
        self.name = name
        self.lines: list[str] = []
        self.record: dict[str, object] = {"command": command or f"python -m benchmarks {name}", "machine": machine()}
        self.tell(f"calibayes benchmark: {what}")
        self.tell(", ".join(f"{key} {value}" for key, value in machine().items()))

    def tell(self, line: str = "") -> None:
        """Print a line, and keep it."""
        print(line, flush=True)
        self.lines.append(line)

    def tell_wrapped(self, text: str, start: str = "", further: str = "") -> None:
        """Print a long text as lines of at most 128 characters, which begin with ``start`` and then with ``further``."""
        for line in textwrap.wrap(text, 128, initial_indent=start, subsequent_indent=further, break_on_hyphens=False):
            self.tell(line)

    def tell_missing(self, done: Sequence[str], methods: Iterable[str], wanted: int) -> None:
        """Say how many trainings of each method are missing.

        Args:
            done: the method of each training that is there.
            methods: all of them.
            wanted: trainings of each.
        """
        counts = {method: done.count(method) for method in methods}
        missing = {method: f"{count} of {wanted}" for method, count in counts.items() if count < wanted}
        self.record["missing"] = missing
        if missing:
            told = ", ".join(f"{method} {count}" for method, count in missing.items())
            self.tell_wrapped(
                f"Not all trainings are done: {told}. Two methods are compared on the seeds and splits that both have."
            )

    def write(self, folder: Path = RESULTS) -> None:
        """Write ``NAME.txt`` and ``NAME.json``."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.txt").write_text("\n".join(self.lines) + "\n")
        (folder / f"{self.name}.json").write_text(json.dumps(self.record, indent=1) + "\n")
        print(f"\nWritten to {folder}/{self.name}.txt\n")


def ratios(timings: dict[str, Timing], base: Timing) -> dict[str, dict[str, float]]:
    """Seconds and the ratio to a baseline, for the record."""
    return {label: {"seconds": timing.seconds, "ratio": timing.over(base)} for label, timing in timings.items()}


def machine() -> dict[str, str]:
    """Where and with what this runs."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu = next((line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line), cpu)
    return {
        "cpu": cpu,
        "threads": str(torch.get_num_threads()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "calibayes": calibayes.__version__,
    }
