"""Post-hoc scalings beside temperature scaling, on calibration problems of small tables and of known errors."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from benchmarks.cross_fitted import cross_fitted
from benchmarks.report import RESULTS, Report
from calibayes.metrics import nll
from calibayes.posthoc import SCALINGS, AutoScaling, PosthocWarning, Scaling

__all__ = ["COMMAND", "WHAT", "section"]

WHAT = "test NLL after each scaling, less that after temperature scaling"
COMMAND = ".venv-tabular/bin/python -m benchmarks posthoc"  # the environment of make bench-tabular, with its tables
Array = npt.NDArray[Any]
_TABLES = (
    "contraceptive", "digits", "mammographic", "phoneme", "pima", "segment", "synthetic-2", "synthetic-5", "vehicle", "vowel",
)  # fmt: skip
_BASES = ("boosting", "perceptron")


class Problem(NamedTuple):
    """Predictions of one classifier: held-out ones to fit on, and others to judge by."""

    name: str
    classes: int
    held_out: Array
    targets: Array
    test: Array
    test_targets: Array


def section(report: Report, *, quick: bool = False) -> None:
    """Fit every scaling on every problem, and tell how far each is from temperature scaling."""
    rows: list[dict[str, Any]] = []
    for problem in _known_errors(200, 1) if quick else _all():
        scores = {name: _score(name, make, problem) for name, make in _methods(problem.classes).items()}
        rows.extend({"problem": problem.name, "classes": problem.classes, "n": len(problem.targets), "method": name, **score}
                    for name, score in scores.items())  # fmt: skip
    frame = pd.DataFrame(rows)
    for many, part in frame.groupby(frame["classes"] > 2):
        _tell(report, part, "three classes or more" if many else "two classes")


def _methods(classes: int) -> dict[str, Callable[[], Scaling]]:
    two = ("platt", "quadratic", "venn-abers", "isotonic")
    return {**{name: make for name, make in SCALINGS.items() if classes == 2 or name not in two}, "auto": AutoScaling}


def _score(name: str, make: Callable[[], Scaling], problem: Problem) -> dict[str, Any]:
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PosthocWarning)
        scaling = make().fit(problem.held_out, problem.targets)
    seconds = time.perf_counter() - begin
    chosen = scaling.chosen if isinstance(scaling, AutoScaling) else name
    # float64's smallest number stands in for a probability of zero, which only isotonic regression gives.
    probs = np.clip(scaling.transform(problem.test), np.finfo(np.float64).tiny, None)
    return {"nll": nll(probs, problem.test_targets, check=False), "seconds": seconds, "chosen": chosen}


def _tell(report: Report, frame: pd.DataFrame, title: str) -> None:
    means = frame.groupby(["problem", "method"])["nll"].mean().unstack()
    order = list(dict.fromkeys(frame["method"]))
    sizes = frame.groupby("problem")["n"].first()
    report.tell(f"\n{title}: {len(means)} problems with {sizes.min():,} to {sizes.max():,} held-out examples")
    report.tell(f"  {'':20}{'median':>10}{'mean':>10}{'best':>10}{'worst':>10}{'better in':>12}{'seconds':>10}")
    record: dict[str, Any] = {}
    for name in order:
        change = (means[name] - means["temperature"]).to_numpy()
        seconds = float(frame[frame["method"] == name]["seconds"].median())
        report.tell(
            f"  {name:<20}{np.median(change):+10.4f}{change.mean():+10.4f}{change.min():+10.4f}{change.max():+10.4f}"
            f"{f'{(change < 0).sum()} of {len(change)}':>12}{seconds:10.3f}"
        )
        record[name] = {"median": float(np.median(change)), "mean": change.mean(), "seconds": seconds}
    chosen = frame[frame["method"] == "auto"]["chosen"].value_counts()
    report.tell("  auto chose " + ", ".join(f"{name} {count} times" for name, count in chosen.items()))
    report.tell(f"\n  {'NLL':<30}" + "".join(f"{name[:11]:>12}" for name in order))
    for problem, row in means.iterrows():
        report.tell(f"  {problem:<30}" + "".join(f"{row[name]:12.4f}" for name in order))
    record["problems"] = {str(problem): row.to_dict() for problem, row in means.iterrows()}
    report.record[title] = record


def _all() -> Iterator[Problem]:
    for table in _TABLES:
        for base in _BASES:
            data = cross_fitted(table, base, 0, RESULTS / "ensemble-scaling")
            held_out = data.fold[0] == 0
            probs, test = data.out_of_fold[0, held_out], data.test[0, 0].astype(np.float64)
            test /= test.sum(1, keepdims=True)
            yield Problem(f"{table}, {base}", probs.shape[1], probs, data.targets[held_out], test, data.test_targets)
    for n in (200, 1000):
        yield from _known_errors(n, 1)


def _known_errors(n: int, seeds: int) -> Iterator[Problem]:
    """Drawn log-scores whose truth is a temperature, a matrix with biases, or for two classes a parabola of the log-odds."""
    for seed in range(seeds):
        for classes, kind in ((2, "temperature"), (2, "parabola"), (5, "temperature"), (5, "matrix"), (20, "matrix")):
            generator = torch.Generator().manual_seed(1000 * seed + classes)
            scores = 3 * torch.randn(n + 5000, classes, generator=generator).double().log_softmax(-1)
            truth = scores / 1.8
            if kind == "matrix":
                noise = torch.randn(classes, classes + 1, generator=generator).double()
                truth = truth + scores @ noise[:, :-1] * (0.3 / classes) + 0.5 * noise[:, -1]
            if kind == "parabola":
                odds = truth[:, 1] - truth[:, 0]
                truth = torch.stack((torch.zeros_like(odds), 0.15 * odds.square() + odds - 0.5), -1)
            targets = torch.multinomial(truth.softmax(-1), 1, generator=generator)[:, 0].numpy()
            probs = scores.softmax(-1).numpy()
            yield Problem(f"drawn, {kind}, K={classes}, n={n}", classes, probs[:n], targets[:n], probs[n:], targets[n:])
