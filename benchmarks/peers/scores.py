"""(4) Metrics of predictions that are there already, over the least that one has to do: the largest of each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from benchmarks.peers import netcal, relplot, torchmetrics
from benchmarks.peers.contest import Entry, Row, contest
from calibayes.metrics import ece, smooth_ece

__all__ = ["METRICS", "metric_rows"]

Metric = Callable[[Tensor, Tensor], Callable[[], float]]
_CLASSES = 10


def _our_ece(probs: Tensor, targets: Tensor) -> Callable[[], float]:
    return lambda: ece(probs, targets)


def _our_smooth_ece(probs: Tensor, targets: Tensor) -> Callable[[], float]:
    return lambda: smooth_ece(probs, targets)


METRICS: dict[str, Mapping[str, Metric]] = {
    "ECE": {"calibayes": _our_ece, "torchmetrics": torchmetrics.ece, "netcal": netcal.ece},
    "smooth ECE": {"calibayes": _our_smooth_ece, "relplot": relplot.smooth_ece},
}


def metric_rows(name: str, n: int, *, repeats: int) -> list[Row]:
    """One metric of n predictions of ten classes, by each library that has it."""
    torch.manual_seed(0)
    logits = 2 * torch.randn(n, _CLASSES)
    targets = torch.multinomial(logits.softmax(-1), 1)[:, 0]
    probs = (1.3 * logits).softmax(-1)
    contenders = {label: partial(_ready, metric, probs, targets) for label, metric in METRICS[name].items()}
    return contest("torch.max of the array (the limit)", lambda: probs.max(-1), contenders, repeats=repeats)


def _ready(metric: Metric, probs: Tensor, targets: Tensor) -> Entry:
    call = metric(probs, targets)
    value = call()
    return Entry(call, f"value {value:.6f}", {"value": value})
