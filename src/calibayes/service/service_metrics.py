"""Numbers for Prometheus, right in total for all workers, also for those that have ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from calibayes.acting.without_labels import expected_accuracy
from calibayes.files.set_aside_rows import SetAsideRows
from calibayes.service.drift_watch import DriftWatch
from calibayes.service.row_predictor import PredictedRows

__all__ = ["OUTSIDER", "ServiceMetrics"]

OUTSIDER = 0.99
"""A row counts as an outsider if its `outsider` is higher; of rows like those set aside, at most 1 % are."""

_LEVEL = 0.01
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_RATES = {  # the sum, the number of rows, and what their ratio is
    "calibayes_mean_confidence": ("confidence", "rows", "The mean confidence of all rows."),
    "calibayes_abstention_rate": ("abstained", "rows", "The share of rows without a decision."),
    "calibayes_outsider_rate": ("outsiders", "rows", f"The share of rows with `outsider` above {OUTSIDER}."),
    "calibayes_expected_accuracy": (
        "expected_right",
        "expected_rows",
        "The accuracy to expect if every row were decided, and confidences mean what they did in training.",
    ),
}


@final
class ServiceMetrics:
    """Counts requests and rows, and tests rows for drift.

    Args:
        set_aside: rows that nothing in training has seen, if the model has some.
        workers: how many there are, which share the level of the drift test.
        seed: of the random sample for the drift test.
    """

    def __init__(self, set_aside: SetAsideRows | None, workers: int, seed: int) -> None:
        self._folder = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
        self._forget_the_dead()
        options: dict[str, Any] = {"registry": None}
        self._requests = Counter("calibayes_requests", "Requests.", ["path", "status"], **options)
        self._seconds = Histogram(
            "calibayes_request_seconds", "Seconds from a request to its answer.", ["path"], buckets=_SECONDS, **options
        )
        self._pass_rows = Histogram("calibayes_pass_rows", "Rows of a pass through the network.", buckets=_ROWS, **options)
        self._rows = Counter("calibayes_rows", "Predicted rows.", **options)
        self._confidence = Counter("calibayes_confidence", "The sum of the confidences of rows.", **options)
        self._abstained = Counter("calibayes_abstained", "Rows without a decision.", **options)
        self._outsiders = Counter("calibayes_outsiders", f"Rows with `outsider` above {OUTSIDER}.", **options)
        self._expected = Counter("calibayes_expected_right", "Rows whose decision is expected to be right.", **options)
        self._expected_rows = Counter("calibayes_expected_rows", "Rows for which that was computed.", **options)
        self._drift_rows = Counter("calibayes_drift_rows", "Rows in the drift test, a sample.", **options)
        self._drift = Gauge(
            "calibayes_drift_evidence",
            "The capital of the drift test, which starts at 1; the highest of the workers.",
            ["of"],
            multiprocess_mode="livemax",
            **options,
        )
        self._alarm = Gauge(
            "calibayes_drift_alarm",
            "1 once rows are no longer like those that the model was calibrated on; by chance with a probability of 1 %.",
            ["of"],
            multiprocess_mode="max",
            **options,
        )
        self._pending: list[PredictedRows] = []
        self._known: tuple[Any, ...] = ()
        self._watch: DriftWatch | None = None
        if set_aside is not None:
            confidence, decision = set_aside.probs.max(1)
            self._known = (confidence.clamp_max(1.0), decision == set_aside.labels)
            self._watch = DriftWatch(set_aside, _LEVEL / workers, seed)
            self._show_drift()

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def rows(self, part: PredictedRows, pass_rows: int) -> None:
        """Count the predictions of some rows; what takes longer is left to `catch_up`."""
        self._pass_rows.observe(pass_rows)
        self._rows.inc(len(part.confidence))
        self._confidence.inc(float(part.confidence.sum()))
        self._abstained.inc(part.abstained)
        if part.outsider is not None:
            self._outsiders.inc(int((part.outsider > OUTSIDER).sum()))
        self._pending.append(part)

    def catch_up(self) -> None:
        """Add the accuracy to expect of the rows since the last call, and test some of them for drift."""
        parts, self._pending = self._pending, []
        if not parts:
            return
        confidence = np.concatenate([part.confidence for part in parts]).clip(0, 1)
        self._expected_rows.inc(len(confidence))
        self._expected.inc(len(confidence) * expected_accuracy(confidence, *self._known).accuracy)
        if self._watch is not None:
            before = self._watched
            self._watch.take(parts)
            self._drift_rows.inc(self._watched - before)
            self._show_drift()

    def page(self) -> bytes:
        """Return all numbers in the format of Prometheus, for all workers together."""
        self.catch_up()
        registry = CollectorRegistry()
        registry.register(_WithRates(self._folder))
        text: bytes = generate_latest(registry)
        return text

    @property
    def _watched(self) -> int:
        assert self._watch is not None
        return next(iter(self._watch.monitors.values())).seen

    def _show_drift(self) -> None:
        assert self._watch is not None
        for name, monitor in self._watch.monitors.items():
            self._drift.labels(name).set(monitor.capital)
            self._alarm.labels(name).set(int(monitor.alarm))

    def _forget_the_dead(self) -> None:
        """Leave the capital of drift tests in workers that have ended out; what they counted stays."""
        for path in self._folder.glob("gauge_live*.db"):
            pid = int(path.stem.rsplit("_", 1)[1])
            if not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
                mark_process_dead(pid, str(self._folder))


@final
class _WithRates:
    """All workers' numbers, and the rates that follow from them."""

    def __init__(self, folder: Path) -> None:
        self._numbers = MultiProcessCollector(None, str(folder))

    def collect(self) -> Iterator[Any]:
        totals: dict[str, float] = {}
        for family in self._numbers.collect():
            totals |= {sample.name: sample.value for sample in family.samples if not sample.labels}
            yield family
        for name, (counter, rows, text) in _RATES.items():
            if count := totals.get(f"calibayes_{rows}_total", 0.0):
                yield GaugeMetricFamily(name, text, value=totals.get(f"calibayes_{counter}_total", 0.0) / count)
