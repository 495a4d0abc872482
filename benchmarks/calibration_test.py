"""The test of "calibrated": how often it rejects classifiers that are calibrated, and that are not, and how long it takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.report import Report
from calibayes.metrics import kce_p_value

__all__ = ["COMMAND", "WHAT", "section"]

WHAT = "how often “calibrated” is rejected, over simulated classifiers"
COMMAND = "python -m benchmarks calibration-test"
_LEVEL = 0.05
_SIZES = (100, 500, 2_000, 10_000)
_RUNS = 3_000
_POWER_SIZES = (200, 500, 2_000)
_POWER_RUNS = 500
_VALUES = torch.tensor([0.6, 0.8, 0.95], dtype=torch.float64)

Simulation = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]


def section(report: Report, *, quick: bool = False) -> None:
    """Simulate and tell."""
    runs, power_runs, million = (20, 10, 10_000) if quick else (_RUNS, _POWER_RUNS, 1_000_000)
    report.tell(f"\ncalibrated: rejected at level {100 * _LEVEL:g} %, in % of {runs:,} classifiers (goal 4 to 6)")
    _tell_rates(report, "size", _CALIBRATED, _SIZES, runs)
    report.tell(f"\nmiscalibrated: rejected, in % of {power_runs:,} classifiers (goal 85 for logits × 1.3 at n = 2,000)")
    _tell_rates(report, "power", _MISCALIBRATED, _POWER_SIZES, power_runs)
    report.tell("\nthe same 2,000 examples in 50 orders")
    probs, targets = _scaled(1.3)(2_000, torch.Generator().manual_seed(0))
    orders = [torch.randperm(2_000, generator=torch.Generator().manual_seed(seed)) for seed in range(50)]
    different = len({kce_p_value(probs[order], targets[order]) for order in orders})
    report.record["p-values of 50 orders"] = different
    report.tell(f"    different p-values{different:16d}  (goal 1)")
    probs, targets = _scaled(1.0)(million, torch.Generator().manual_seed(0))
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        kce_p_value(probs, targets)
        seconds.append(time.perf_counter() - begin)
    report.record["seconds"] = {"n": million, "median": sorted(seconds)[1]}
    report.tell(f"\n{million:,} examples of 4 classes: {sorted(seconds)[1]:.2f} s")


def _tell_rates(report: Report, kind: str, simulations: dict[str, Simulation], sizes: tuple[int, ...], runs: int) -> None:
    report.tell(" " * 36 + "".join(f"{f'n = {n:,}':>16}" for n in sizes))
    record: dict[str, dict[str, float]] = {}
    for name, simulate in simulations.items():
        rates = {n: _rate(simulate, n, runs) for n in sizes}
        record[name] = {str(n): rate for n, rate in rates.items()}
        cells = [f"{100 * rate:.1f} ± {100 * math.sqrt(rate * (1 - rate) / runs):.1f}" for rate in rates.values()]
        report.tell(f"    {name:<32}" + "".join(f"{cell:>16}" for cell in cells))
    report.record[kind] = record


def _rate(simulate: Simulation, n: int, runs: int) -> float:
    rejected = 0
    for seed in range(runs):
        generator = torch.Generator().manual_seed(1_000_003 * n + seed)
        rejected += kce_p_value(*simulate(n, generator), seed=seed, check=False) <= _LEVEL
    return rejected / runs


def _right_as_often(confidence: Callable[[Tensor], Tensor]) -> Simulation:
    """Two classes; confidences are a function of uniform numbers, and decisions right with that probability."""

    def simulate(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        r = confidence(torch.rand(n, generator=generator, dtype=torch.float64))
        wrong = torch.rand(n, generator=generator, dtype=torch.float64) >= r
        return torch.stack((r, 1 - r), -1), wrong.long()

    return simulate


def _scaled(factor: float, spread: float = 1.5) -> Simulation:
    """Four classes, normal logits; the classifier's are the true ones times a factor."""

    def simulate(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        logits = spread * torch.randn(n, 4, generator=generator, dtype=torch.float64)
        targets = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
        return (factor * logits).softmax(-1), targets

    return simulate


def _wavy(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Two classes, 10 points overconfident and underconfident in turn: right on average."""
    r = 0.5 + 0.5 * torch.rand(n, generator=generator, dtype=torch.float64)
    right = (r + 0.1 * torch.sin(4 * math.pi * (r - 0.5))).clamp(0, 1)
    wrong = torch.rand(n, generator=generator, dtype=torch.float64) >= right
    return torch.stack((r, 1 - r), -1), wrong.long()


_CALIBRATED: dict[str, Simulation] = {
    "uniform, 0.5 to 1": _right_as_often(lambda u: 0.5 + 0.5 * u),
    "near 1, mean 0.93": _right_as_often(lambda u: 1 - 0.2 * u**2),
    "nearly certain, mean 0.99": _right_as_often(lambda u: 1 - 0.02 * u),
    "0.6, 0.8 and 0.95 only": _right_as_often(lambda u: _VALUES[(3 * u).long()]),
}
_MISCALIBRATED: dict[str, Simulation] = {
    "4 classes, logits × 1.3": _scaled(1.3),
    "4 classes, logits × 1.3, flatter": _scaled(1.3, spread=1.0),
    "4 classes, logits × 0.77": _scaled(0.77),
    "± 10 points, right on average": _wavy,
}
