"""Rows of the table: contenders timed turn by turn beside the limit, each of which may fail on its own."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.report import Report
from benchmarks.timing import Timing, calls_per_turn, turns

__all__ = ["MOST", "Entry", "Row", "contest", "tell_rows"]

MOST = 0.95  # with a smaller share of its weights Bayesian it is another network, and the tables say so
_LONGEST = 200  # characters of an error that are shown


@dataclass(frozen=True)
class Entry:
    """A call that is ready to be timed, with what the table says beside its time, and the same as numbers for the record."""

    call: Callable[[], object]
    remark: str = ""
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """What came of a contender: its times, or the error that it ended with."""

    label: str
    entry: Entry | None = None
    timing: Timing | None = None
    error: str = ""


def contest(
    limit: str, bound: Callable[[], object], contenders: Mapping[str, Callable[[], Entry]], *, repeats: int
) -> list[Row]:
    """Time the limit, which is the first row, and all contenders that run.

    Args:
        limit: what the limit is called.
        bound: a call of it.
        contenders: for each name, what gets its call ready.
        repeats: how many turns each has.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        attempts = {limit: _Attempt(lambda: Entry(bound))} | {label: _Attempt(ready) for label, ready in contenders.items()}
        calls = {label: calls_per_turn(attempt) for label, attempt in attempts.items()}
        running = {label: attempt for label, attempt in attempts.items() if not attempt.error}
        timings = turns(running, calls, repeats=repeats)
    return [
        Row(label, error=attempt.error) if attempt.error else Row(label, attempt.entry, timings[label])
        for label, attempt in attempts.items()
    ]


class _Attempt:
    """A contender that is called until its first error, which is kept."""

    def __init__(self, ready: Callable[[], Entry]) -> None:
        self.ready = ready
        self.entry: Entry | None = None
        self.error = ""

    def __call__(self) -> None:
        if self.error:
            return
        try:
            if self.entry is None:
                self.entry = self.ready()
            self.entry.call()
        except Exception as error:
            self.error = _short(error)


def _short(error: Exception) -> str:
    words = " ".join(str(error).split())
    told = f"absent: {words}" if isinstance(error, ModuleNotFoundError) else f"{type(error).__name__}: {words}"
    return textwrap.shorten(told, _LONGEST, placeholder=" …")


def tell_rows(report: Report, title: str, rows: list[Row], ours: str = "", *, base: str = "limit") -> None:
    """Print rows, each with its distance to the limit, which is the first of them, and who is ahead of the row ``ours``.

    Args:
        report: where they are printed.
        title: of the table.
        rows: the limit, and the contenders.
        ours: label of the row that others are compared with.
        base: what the column of ratios calls the first row.
    """
    limit = rows[0].timing
    if limit is None:
        raise RuntimeError(f"{rows[0].label}: {rows[0].error}")
    report.tell(f"  {title:<56} {'time':>16}  {f'× {base}':>10}  {'quartiles':>15}")
    recorded: dict[str, Mapping[str, object]] = {}
    for row in rows:
        if row.timing is None or row.entry is None:
            report.tell_wrapped(row.error, f"    {row.label:<38} ", " " * 43)
            recorded[row.label] = {"error": row.error}
            continue
        seconds, ratio, quartiles = row.timing.seconds, row.timing.over(limit), row.timing.quartiles(limit)
        spread = "" if row is rows[0] else "{:,.2f} to {:,.2f}".format(*quartiles)
        report.tell(f"    {row.label:<54} {seconds * 1e3:13,.3f} ms  {ratio:9,.2f}x  {spread:>15}  {row.entry.remark}".rstrip())
        recorded[row.label] = {"seconds": seconds, "ratio": ratio, "quartiles": quartiles, **row.entry.facts}
    report.record[title] = recorded
    if ours in recorded and "error" not in recorded[ours]:
        report.tell_wrapped(_standing(recorded, ours), "    → ", "      ")


def _standing(rows: Mapping[str, Mapping[str, Any]], ours: str) -> str:
    """Who of the others, which are all but the limit and calibayes itself, is ahead, and whether that can be told."""
    own = rows[ours]
    others = {label: row for label, row in list(rows.items())[1:] if "error" not in row and not label.startswith("calibayes")}
    ahead = []
    for label, row in others.items():
        if row["ratio"] < own["ratio"]:
            told = "quartiles overlap" if row["quartiles"][1] >= own["quartiles"][0] else "quartiles do not overlap"
            few = f", {row['bayesian']:.0%} of the weights Bayesian" if row.get("bayesian", 1) < MOST else ""
            if "weights" in own and row.get("weights", 0) < MOST * own["weights"]:
                few = f", with {row['weights'] / own['weights']:.0%} of its weights"
            ahead.append(f"{label} ({told}{few})")
    return f"ahead of {ours}: {', '.join(ahead)}" if ahead else f"no other library is ahead of {ours}"
