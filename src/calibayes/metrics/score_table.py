"""The result of `evaluate`: every metric of one set of predictions, with intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from calibayes.metrics.catalogue import METRICS, MetricInfo
from calibayes.metrics.intervals import Interval
from calibayes.metrics.pairs import NEED_ALL_PROBABILITIES

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BELOW", "NEEDS_ALL", "ClassScores", "Scores", "as_json_numbers", "shown"]


BELOW = "Chance inflates every calibration error; the intervals are corrected for this, so they may lie below the estimate."
NEEDS_ALL = "Top-k accuracy, classwise ECE and the parts of the Brier score need the probabilities of all classes."


@dataclass(frozen=True, kw_only=True)
class ClassScores:
    """One class.

    Attributes:
        name: what it is called.
        share: how much of the data is of this class.
        probability: the mean probability that the classifier gives it.
        ece: the calibration error of that probability.
    """

    name: str
    share: float
    probability: float
    ece: float


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Every metric of a set of predictions; print it for a table.

    `calibayes.metrics.METRICS` says what each metric means. The binned, proper and classwise ones are exact in every form;
    from a `Stream`, ``ece_equal_mass``, ``smooth_ece``, ``mmce``, ``wmmce``, ``kce_squared``, ``aurc`` and
    ``coverage_at_target`` are those of fine cells of confidence.

    Attributes:
        n: the number of examples (of positive weight).
        classes: the number of classes.
        bins: the number of bins.
        k: of the top-k accuracy.
        target_accuracy: of the coverage.
        level: of the intervals; None where there are none.
        intervals: an interval for each metric by name.
        class_names: what the classes are called, if that was told.
        per_class: each class on its own.
        pairs: they are those of confidence and correctness alone; what needs all probabilities is NaN.
    """

    n: int
    classes: int
    bins: int
    k: int
    target_accuracy: float
    accuracy: float
    top_k: float
    confidence: float
    overconfidence: float
    nll: float
    brier: float
    brier_reliability: float
    brier_resolution: float
    brier_uncertainty: float
    ece: float
    ece_equal_mass: float
    ece_classwise: float
    mce: float
    rms_calibration_error: float
    ece_squared_debiased: float
    smooth_ece: float
    mmce: float
    wmmce: float
    kce_squared: float
    kce_p_value: float
    aurc: float
    coverage_at_target: float
    level: float | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    class_names: tuple[str, ...] | None = None
    per_class: tuple[ClassScores, ...] = ()
    pairs: bool = False

    @property
    def values(self) -> dict[str, float]:
        """Every metric by name, in the order of display."""
        return {metric.name: getattr(self, metric.name) for metric in METRICS}

    @property
    def metrics(self) -> tuple[MetricInfo, ...]:
        """The metrics to show: those that are known, and the top-k accuracy only where it is not the accuracy."""
        hidden = {"top_k"} if self.k == 1 else set()
        hidden |= set(NEED_ALL_PROBABILITIES) if self.pairs else set()
        return tuple(metric for metric in METRICS if metric.name not in hidden)

    def title(self, name: str) -> str:
        """Return the title of a metric, with its number of bins, classes or target."""
        special = {
            "top_k": f"top-{self.k} accuracy",
            "ece": f"ECE, {self.bins} bins",
            "coverage_at_target": f"coverage at {100 * self.target_accuracy:g} % accuracy",
        }
        return special.get(name) or next(metric.title for metric in METRICS if metric.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, lists and dicts: ``n``, every metric by name, and ``intervals`` as ``[low, high]``."""
        row: dict[str, Any] = {"n": self.n, "classes": self.classes, "bins": self.bins, **self.values}
        row |= {"k": self.k, "target_accuracy": self.target_accuracy}
        if self.intervals:
            row |= {"level": self.level, "intervals": {name: list(ends) for name, ends in self.intervals.items()}}
        if self.class_names is not None:
            row["per_class"] = [vars(each) for each in self.per_class]
        return row

    def to_json(self) -> str:
        """`to_dict` as JSON; what is not a number becomes null, and an infinite value the string ``"Infinity"``."""
        return json.dumps(as_json_numbers(self.to_dict()), ensure_ascii=False)

    def to_frame(self) -> pd.DataFrame:
        """One row per metric: ``value``, ``low`` and ``high``."""
        import pandas as pd

        nothing = Interval(math.nan, math.nan)
        rows = {name: (value, *self.intervals.get(name, nothing)) for name, value in self.values.items()}
        return pd.DataFrame.from_dict(rows, orient="index", columns=["value", "low", "high"]).rename_axis("metric")

    def __str__(self) -> str:
        rows = [("examples", f"{self.n:,}", "")]
        for name in (metric.name for metric in self.metrics):
            value, ends = getattr(self, name), self.intervals.get(name)
            span = "" if ends is None else f"{shown(name, ends.low)} to {shown(name, ends.high)}"
            rows.append((self.title(name), shown(name, value), span))
        if self.level is not None:
            rows.insert(0, ("", "", f"{100 * self.level:g} % interval"))
        left, right = (max(len(row[index]) for row in rows) for index in (0, 1))
        lines = [f"{name:<{left}}  {value:>{right}}  {ends}".rstrip() for name, value, ends in rows]
        below = any(ends.high < getattr(self, name) for name, ends in self.intervals.items())
        notes = [BELOW] * below + [NEEDS_ALL] * self.pairs
        return "\n".join([*lines, "", *notes] if notes else lines)


def as_json_numbers(value: Any) -> Any:
    """The same with NaN as None and infinite numbers as text, which JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {key: as_json_numbers(each) for key, each in value.items()}
    return [as_json_numbers(each) for each in value] if isinstance(value, list | tuple) else value


def shown(name: str, value: float) -> str:
    """A value as people write it."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if name == "kce_p_value":
        return "≤0.001" if value <= 0.001 else f"{value:.3f}"
    if "squared" in name and value != 0:
        return f"{value:.1e}"
    return f"{value:+.4f}" if name == "overconfidence" else f"{value:.4f}"
