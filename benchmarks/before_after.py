"""Rows of the core table before and after a change: two checkouts, each in a process of its own, timed turn by turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from benchmarks.report import Report
from benchmarks.row_server import ROWS
from benchmarks.timing import Timing
from benchmarks.training_step import NETWORKS
from calibayes.errors import CalibayesError

__all__ = ["RowProcess", "measure", "section", "verdict", "worktree"]

_ROOT = Path(__file__).parents[1]
_MLP = next(iter(NETWORKS))
_PREDICT_REPEATS, _QUICK_REPEATS = 11, 2


def section(report: Report, *, before: str, quick: bool = False) -> None:
    """Measure and tell.

    Args:
        report: where it is told.
        before: a revision, which is checked out into a temporary worktree.
        quick: a few rows, twice each, to see that it runs.
    """
    names = [name for name in ROWS if not quick or (_MLP in name and "R=8" not in name)]
    with ExitStack() as stack:
        old = stack.enter_context(worktree(before))
        commits = {"before": _commit(old), "after": _commit(_ROOT)}
        report.record["commits"] = commits
        report.tell(f"before: {commits['before']}; after: {commits['after']}")
        report.tell("(plain PyTorch is the same code in both: its ratio shows the noise)")
        report.tell(f"\n  {'':<56}{'before':>14}{'after':>14}{'ratio':>9}  {'quartiles':>15}")
        pair = [stack.enter_context(RowProcess(tree)) for tree in (old, _ROOT)]
        for name in names:
            _tell(report, name, pair, _QUICK_REPEATS if quick else repeats_of(name))


def _tell(report: Report, name: str, pair: Sequence[RowProcess], repeats: int) -> None:
    try:
        first, second = measure(name, pair, repeats=repeats)
    except RowError as error:
        report.tell_wrapped(str(error), f"  {name:<56}", " " * 58)
        report.record[name] = {"error": str(error)}
        return
    ratio, (low, high) = second.over(first), second.quartiles(first)
    report.record[name] = {"before": first.seconds, "after": second.seconds, "ratio": ratio, "quartiles": (low, high)}
    times = f"{first.seconds * 1e3:11.3f} ms{second.seconds * 1e3:11.3f} ms"
    report.tell(f"  {name:<56}{times}{ratio:8.2f}x  {f'{low:.2f} to {high:.2f}':>15}  {verdict(low, high)}".rstrip())


def repeats_of(name: str) -> int:
    """How many turns a row has: as many as in the core table."""
    network = name.split(": ")[1]
    return _PREDICT_REPEATS if name.startswith("predict") else NETWORKS[network][1]


def verdict(low: float, high: float) -> str:
    """Whether a change can be told from the quartiles of the ratio after/before."""
    return "slower" if low > 1 else "faster" if high < 1 else ""


class RowError(CalibayesError):
    """A row that one of the checkouts cannot run."""


class RowProcess:
    """A process that times rows of one checkout, with that checkout's own `calibayes` and `benchmarks`.

    Args:
        tree: the root of the checkout.
    """

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        server = Path(__file__).with_name("row_server.py")
        paths = [str(tree / "src"), str(tree)]
        self._process = subprocess.Popen(
            # -P: the server's own folder, which is that of another checkout, is not searched for modules.
            [sys.executable, "-P", str(server), str(torch.get_num_threads())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    def __enter__(self) -> RowProcess:
        try:
            loaded = Path(self._answer()["calibayes"])
            if not loaded.is_relative_to(self.tree):
                raise RowError(f"Expected calibayes from {self.tree}, but it came from {loaded}.")
        except RowError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # closes its input, at whose end it stops, and waits for that
            pass

    def prepare(self, name: str) -> int:
        """Get a row ready; returns how many calls a turn should have."""
        return int(self._asked({"row": name})["calls"])

    def turn(self, calls: int) -> float:
        """Seconds of one call, from so many."""
        return float(self._asked({"calls": calls})["seconds"])

    def _asked(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RowError(f"The process of {self.tree} ended; what it printed above says why.")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RowError(f"{self.tree.name}: {answer['error']}")
        return answer


def measure(name: str, pair: Sequence[RowProcess], *, repeats: int) -> tuple[Timing, Timing]:
    """Time a row in both processes, turn by turn; who begins alternates, and a turn has as many calls in each."""
    calls = min(process.prepare(name) for process in pair)
    times: tuple[list[float], list[float]] = ([], [])
    for repeat in range(repeats):
        for index in (0, 1) if repeat % 2 == 0 else (1, 0):
            times[index].append(pair[index].turn(calls))
    return Timing(tuple(times[0])), Timing(tuple(times[1]))


@contextmanager
def worktree(revision: str) -> Iterator[Path]:
    """Check a revision out into a temporary folder, which is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "before"
        _git("worktree", "add", "--detach", "--quiet", str(tree), revision)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _commit(tree: Path) -> str:
    """The short name of what is checked out, and whether files differ from it."""
    changed = _git("status", "--porcelain", "--untracked-files=no", tree=tree)
    return _git("rev-parse", "--short", "HEAD", tree=tree) + (" with changes" if changed else "")


def _git(*words: str, tree: Path = _ROOT) -> str:
    done = subprocess.run(["git", "-C", str(tree), *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise RowError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()
