"""Measure everything, print the table, and write it down with the machine and the versions."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Any

import torch

from benchmarks.report import RATIOS, Report
from calibayes.errors import CalibayesError

# Each has a function `section(report)`. They are loaded one by one: what one needs may be missing where another is run.
_SECTIONS = {
    "core": "benchmarks.core",
    "posteriors": "benchmarks.posteriors",
    "metrics": "benchmarks.metrics",
    "peers": "benchmarks.peers.section",
    "processes": "benchmarks.processes",
    "growth": "benchmarks.growth",
    "sweeps": "benchmarks.sweeps",
    "fine_tuning": "benchmarks.fine_tuning",
    "tabular": "benchmarks.tabular",
    "texts": "benchmarks.texts",
    "ensemble-scaling": "benchmarks.ensemble_scaling",
    "posthoc": "benchmarks.posthoc",
    "distil": "benchmarks.distil",
    "before-after": "benchmarks.before_after",
    "tables": "benchmarks.tables",
    "calibration-test": "benchmarks.calibration_test",
    "long-table": "benchmarks.long_table",
    "predict": "benchmarks.predicted_files",
    "serve": "benchmarks.serve",
}
_BEFORE = ("before-after", "tables")
_DEFAULT = ["core", "posteriors", "metrics"]
_QUICK = (
    "peers",
    "fine_tuning",
    "tabular",
    "texts",
    "ensemble-scaling",
    "posthoc",
    "distil",
    "calibration-test",
    "long-table",
    "predict",
    "serve",
    *_BEFORE,
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", metavar="section", help=f"{', '.join(_SECTIONS)}; {', '.join(_DEFAULT)} by default"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{', '.join(_QUICK)} alone, tiny: does everything run? nothing is written",
    )
    parser.add_argument("--before", metavar="REV", help=f"the revision that {' or '.join(_BEFORE)} compares this checkout with")
    arguments = parser.parse_args()
    wanted = arguments.sections or _DEFAULT
    if unknown := [name for name in wanted if name not in _SECTIONS]:
        parser.error(f"Expected sections among {', '.join(_SECTIONS)}, but got {', '.join(unknown)}.")
    if arguments.quick and (len(wanted) > 1 or wanted[0] not in _QUICK):
        parser.error(f"Expected --quick with {' or '.join(_QUICK)} alone, but got it with {', '.join(wanted)}.")
    if any(name in wanted for name in _BEFORE) != (arguments.before is not None):
        parser.error(f"Expected {' or '.join(_BEFORE)} with --before REV, and --before with these only.")
    for name in wanted:
        module = import_module(_SECTIONS[name])
        torch.set_num_threads(1 if arguments.quick else getattr(module, "THREADS", 2))
        options: dict[str, Any] = {"quick": True} if arguments.quick else {}
        command = getattr(module, "COMMAND", "")
        if name in _BEFORE:
            options["before"] = arguments.before
            command = f"python -m benchmarks {name} --before {arguments.before}"
        report = Report(name, getattr(module, "WHAT", RATIOS), command)
        module.section(report, **options)
        if not arguments.quick:
            report.write()


if __name__ == "__main__":
    try:
        main()
    except CalibayesError as error:
        sys.exit(f"benchmarks: {error}")
    except KeyboardInterrupt:
        sys.exit("Stopped. Trainings that are done are kept for the next time; timings begin again.")
