"""(d) The metrics: everything at once, intervals, and a stream; over torchmetrics' ECE of the same array."""

from __future__ import annotations

import torch
from torchmetrics.functional.classification import multiclass_calibration_error

from benchmarks.report import Report, ratios
from benchmarks.timing import Timing, interleaved, peak_memory
from calibayes.metrics import Stream, confidence_interval, ece, evaluate

__all__ = ["measure", "megabytes", "section"]

_N = 1_000_000
_CLASSES = 10

_SETUP = f"""
import torch
from calibayes.metrics import confidence_interval, evaluate
torch.set_num_threads(2)
probs, targets = torch.randn({_N}, {_CLASSES}).softmax(-1), torch.randint({_CLASSES}, ({_N},))
evaluate(probs[:3000], targets[:3000], replicates=10)
"""
_MEMORY = {
    "evaluate, no intervals": "evaluate(probs, targets, intervals=False)",
    "evaluate, with intervals": "evaluate(probs, targets)",
    "ECE, 1,000 replicates": 'confidence_interval("ece", probs, targets)',
}


def section(report: Report) -> None:
    """Measure and tell."""
    report.tell(f"\n(d) metrics of {_N:,} predictions of 10 classes; ratio to torchmetrics' single ECE")
    timings = measure()
    base = timings["torchmetrics ECE"]
    report.record["metrics: n=1000000"] = ratios(timings, base)
    for label, timing in timings.items():
        goal = "  (goal 30)" if label in ("evaluate, no intervals", "ECE, 1,000 replicates") else ""
        report.tell(f"    {label:<28} {timing.seconds * 1e3:9.1f} ms  {timing.over(base):6.2f}x{goal}")
    memory_of = megabytes()
    report.record["metrics: megabytes"] = memory_of
    for label, used in memory_of.items():
        report.tell(f"    peak memory of {label:<28} {used:6.0f} MB  (goal 1,000)")


def measure() -> dict[str, Timing]:
    """Times for a million predictions of ten classes."""
    torch.manual_seed(0)
    logits = 2 * torch.randn(_N, _CLASSES)
    targets = torch.multinomial(logits.softmax(-1), 1)[:, 0]
    probs = (1.3 * logits).softmax(-1)

    def streamed() -> None:
        stream = Stream()
        for p, y in zip(probs.split(10_000), targets.split(10_000), strict=True):
            stream.update(p, y)

    return interleaved(
        {
            "torchmetrics ECE": lambda: multiclass_calibration_error(probs, targets, num_classes=_CLASSES, n_bins=15),
            "ECE": lambda: ece(probs, targets),
            "ECE, 1,000 replicates": lambda: confidence_interval("ece", probs, targets),
            "evaluate, no intervals": lambda: evaluate(probs, targets, intervals=False),
            "evaluate, with intervals": lambda: evaluate(probs, targets),
            "Stream, batches of 10,000": streamed,
        },
        repeats=5,
    )


def megabytes() -> dict[str, float]:
    """Peak memory beyond the predictions themselves."""
    return {label: peak_memory(_SETUP, run) / 1e6 for label, run in _MEMORY.items()}
