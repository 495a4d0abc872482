"""What scores of many classifiers on many tables come to: means, and differences with intervals over tables."""

from __future__ import annotations

import math
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from benchmarks.report import Report
from calibayes.metrics import accuracy, brier, ece, nll
from calibayes.recipes.compare.difference_interval import Estimate, mean_difference

__all__ = ["METRICS", "Difference", "differences", "probabilities", "scored", "tell_differences", "tell_means", "versions"]

Array = npt.NDArray[Any]
METRICS = {"nll": nll, "ece": ece, "accuracy": accuracy, "brier": brier}
_SMALLEST = 1e-15  # a probability of zero where the truth is would make a whole column infinite


class Difference(NamedTuple):
    """How far a classifier is from another, over the tables that both have been scored on.

    Attributes:
        estimate: the mean over tables with its interval.
        tables: how many.
        lower: on how many its value is lower.
        p_value: of Wilcoxon's signed-rank test over tables, corrected for the number of classifiers (Holm).
    """

    estimate: Estimate
    tables: int
    lower: int
    p_value: float


def probabilities(probs: Any) -> Array:
    """Probabilities of at least 1e-15, whose sum is 1."""
    probs = np.clip(np.asarray(probs, np.float64), _SMALLEST, None)
    return probs / probs.sum(1, keepdims=True)  # type: ignore[no-any-return]


def scored(probs: Any, targets: Any) -> dict[str, float]:
    """Score probabilities by every metric."""
    return {name: float(metric(probabilities(probs), targets)) for name, metric in METRICS.items()}


def differences(
    scores: pd.DataFrame, base: str, *, ratio: bool = False, comparisons: int | None = None
) -> dict[str, Difference]:
    """Compare each classifier with a baseline, by Student's interval for the mean over tables.

    A table's value is the mean over the splits that both have been scored on.

    Args:
        scores: a line for each table and split, in this order in its index, and a column for each classifier; what failed is
            missing.
        base: the column to compare with.
        ratio: compare the logarithms of these means.
        comparisons: how many intervals shall hold together at 95 % (Bonferroni); by default as many as there are.
    """
    others = [str(name) for name in scores if name != base]
    result = {}
    for name in others:
        means = scores[[base, name]].dropna().groupby(level=0).mean()
        first, second = means[name].to_numpy(), means[base].to_numpy()
        gaps = np.log(first / second) if ratio else first - second
        if len(gaps) > 1:
            estimate = mean_difference(gaps.tolist(), 0.0, comparisons=comparisons or len(others))
            p_value = float(stats.wilcoxon(gaps).pvalue) if np.any(gaps) else 1.0
            result[name] = Difference(estimate, len(gaps), int((gaps < 0).sum()), p_value)
    return _holm(result)


def _holm(differences: dict[str, Difference]) -> dict[str, Difference]:
    """Correct p-values for their number."""
    ordered = sorted(differences, key=lambda name: differences[name].p_value)
    largest, corrected = 0.0, dict(differences)
    for place, name in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - place) * differences[name].p_value))
        corrected[name] = differences[name]._replace(p_value=largest)
    return corrected


def tell_means(report: Report, frame: pd.DataFrame, rows: list[str], base: str) -> None:
    """Tell what each classifier comes to over all tables, those without a result as a line too."""
    headings = ("NLL", "ECE", "accuracy", "Brier", "CPU s", "CPU ratio")
    report.tell(f"\n  {'means over tables':<28}{'tables':>8}{'trained':>9}" + "".join(f"{heading:>10}" for heading in headings))
    seconds = _means(frame, "cpu_seconds")
    record: dict[str, Any] = {}
    for name in rows:
        part = frame[frame["row"] == name]
        if part.empty:
            report.tell(f"  {name:<28}{0:>8}  no result")
            continue
        of_tables = part.groupby("table")[[*METRICS, "cpu_seconds"]].mean()
        nlls = math.exp(np.log(of_tables["nll"]).mean())
        times = np.exp(np.log(seconds[name] / seconds[base]).mean()) if base in seconds else math.nan
        line = {
            "tables": len(of_tables),
            "trained": len(part),
            "geometric_mean_nll": nlls,
            "cpu_ratio": float(times),
            **of_tables.mean().to_dict(),
        }
        record[name] = line
        cells = f"{nlls:10.4f}" + "".join(f"{line[metric]:10.4f}" for metric in ("ece", "accuracy", "brier"))
        report.tell(f"  {name:<28}{len(of_tables):>8}{len(part):>9}{cells}{line['cpu_seconds']:10.1f}{times:9.1f}x")
    report.tell(f"  NLL: geometric mean; CPU ratio: geometric mean of the ratios to {base}")
    report.record["means"] = record


def tell_differences(report: Report, frame: pd.DataFrame, rows: list[str], base: str) -> None:
    """Tell how far every classifier is from a baseline in NLL, ECE and accuracy."""
    tables: dict[str, dict[str, Difference]] = {}
    for metric in METRICS:
        scores = frame.set_index(["table", "repeat", "row"])[metric].unstack("row")
        tables[metric] = differences(scores[rows], base, ratio=metric == "nll")
    heads = [f"{name:>9}{'95 % interval':>20}{'lower on':>10}{'p':>7}" for name in ("log NLL", "ECE", "accuracy")]
    report.tell(f"\n  {'less ' + base:<28}{' '.join(heads)}")
    for name in tables["nll"]:
        of_metrics = [tables[metric][name] for metric in ("nll", "ece", "accuracy")]
        cells = [f"{_cells(own.estimate)}{f'{own.lower} of {own.tables}':>10}{_shown_p(own.p_value):>7}" for own in of_metrics]
        report.tell(f"  {name:<28}{' '.join(cells)}".rstrip())
    report.record[f"less {base}"] = {
        metric: {name: _record(each) for name, each in of_metric.items()} for metric, of_metric in tables.items()
    }


def _record(each: Difference) -> dict[str, Any]:
    return {**each.estimate._asdict(), "tables": each.tables, "lower": each.lower, "p": each.p_value}


def _shown_p(value: float) -> str:
    return "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def versions(*packages: str) -> dict[str, str]:
    """The versions of packages, "not installed" for those that are missing."""
    result = {}
    for name in packages:
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            result[name] = "not installed"
    return result


def _means(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Means over splits: a line for each table, a column for each classifier."""
    return frame.groupby(["table", "row"])[metric].mean().unstack("row")


def _cells(estimate: Estimate) -> str:
    interval = f"{estimate.low:+.4f} to {estimate.high:+.4f}"
    return f"{estimate.value:+9.4f}{interval:>20}"
