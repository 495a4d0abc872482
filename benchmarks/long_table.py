"""How long the classifier takes on a table of 100,000 rows and 50 columns, beside calibrated boosted trees."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks.report import Report
from calibayes import CalibayesClassifier

__all__ = ["WHAT", "section"]

WHAT = "seconds of whole fits, one after the other, with as many threads as there are cores"
_ROWS, _COLUMNS, _QUICK_ROWS = 100_000, 50, 1_000
_CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "calibayes network, cross-fitted": lambda: CalibayesClassifier(method="ema", random_state=0),
    "calibayes default, all methods tried": lambda: CalibayesClassifier(random_state=0),
    "HistGradientBoosting, calibrated": lambda: CalibratedClassifierCV(HistGradientBoostingClassifier(random_state=0)),
}


def section(report: Report, *, quick: bool = False) -> None:
    """Measure and tell."""
    rows = _QUICK_ROWS if quick else _ROWS
    x, y = make_classification(
        n_samples=2 * rows, n_features=_COLUMNS, n_informative=20, n_redundant=10, n_classes=3, flip_y=0.05, random_state=0
    )
    x, test_x, y, test_y = train_test_split(x, y, train_size=rows, random_state=0)
    report.tell(f"\na made table of {rows:,} rows and {_COLUMNS} columns, 3 classes; NLL on as many others")
    report.tell(f"    {'':<40}{'seconds':>10}{'CPU s':>10}{'NLL':>10}")
    for name, make in _CLASSIFIERS.items():
        begin, cpu = time.perf_counter(), time.process_time()
        fitted = make().fit(x, y)
        took, cpu = time.perf_counter() - begin, time.process_time() - cpu
        nll = float(log_loss(test_y, fitted.predict_proba(test_x)))
        report.tell(f"    {name:<40}{took:>10.1f}{cpu:>10.1f}{nll:>10.4f}")
        report.record[name] = {"seconds": took, "cpu_seconds": cpu, "nll": nll}
