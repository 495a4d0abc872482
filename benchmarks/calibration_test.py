"""The test of "calibrated": how often it rejects classifiers that are calibrated, and that are not, and how long it takes."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks.report import Report
from calibayes.metrics import kce_p_value
from calibayes.metrics.calibration_test import p_values
from calibayes.metrics.confidence_cells import Cells

__all__ = ["COMMAND", "WHAT", "section"]

WHAT = "how often “calibrated” is rejected, over simulated classifiers"
COMMAND = "python -m benchmarks calibration-test"
_LEVEL = 0.05
_SIZES = (100, 500, 2_000, 10_000)
_SETS, _OUTCOMES = 150, 400
_POWER_SIZES = (200, 500, 2_000)
_POWER_RUNS = 300
_WIDTH = 0.4
_VALUES = torch.tensor([0.6, 0.8, 0.95], dtype=torch.float64)

Simulation = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]


def section(report: Report, *, quick: bool = False) -> None:
    """Simulate and tell."""
    sets, power_runs, million = (5, 10, 10_000) if quick else (_SETS, _POWER_RUNS, 1_000_000)
    report.tell(f"\ncalibrated: rejected at level {100 * _LEVEL:g} %, in % of {sets * _OUTCOMES:,} classifiers (goal 4 to 6)")
    report.tell(f"({sets} sets of confidences, {_OUTCOMES} outcomes of each; ± the standard error)")
    _tell_rates(report, "size", _SIZES, {name: partial(_size, shape, sets) for name, shape in _SHAPES.items()})
    report.tell(f"\nmiscalibrated: rejected, in % of {power_runs:,} classifiers (goal 85 for logits × 1.3 at n = 2,000)")
    _tell_rates(
        report, "power", _POWER_SIZES, {name: partial(_power, each, power_runs) for name, each in _ALTERNATIVES.items()}
    )
    report.tell("\nthe same 2,000 examples in 50 orders")
    probs, targets = _scaled(1.3)(2_000, torch.Generator().manual_seed(0))
    orders = [torch.randperm(2_000, generator=torch.Generator().manual_seed(seed)) for seed in range(50)]
    different = len({kce_p_value(probs[order], targets[order]) for order in orders})
    report.record["p-values of 50 orders"] = different
    report.tell(f"    different p-values{different:16d}  (goal 1)")
    probs, targets = _scaled(1.0)(million, torch.Generator().manual_seed(0))
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        kce_p_value(probs, targets)
        seconds.append(time.process_time() - begin)
    report.record["CPU seconds"] = {"n": million, "median": sorted(seconds)[1]}
    report.tell(f"\n{million:,} examples of 4 classes: {sorted(seconds)[1]:.2f} s of CPU time")


def _tell_rates(
    report: Report, kind: str, sizes: tuple[int, ...], rates: dict[str, Callable[[int], tuple[float, float]]]
) -> None:
    report.tell(" " * 36 + "".join(f"{f'n = {n:,}':>16}" for n in sizes))
    record: dict[str, dict[str, tuple[float, float]]] = {}
    for name, measured in rates.items():
        found = {str(n): measured(n) for n in sizes}
        record[name] = found
        cells = [f"{100 * rate:.2f} ± {100 * error:.2f}" for rate, error in found.values()]
        report.tell(f"    {name:<32}" + "".join(f"{cell:>16}" for cell in cells))
    report.record[kind] = record


def _size(shape: Callable[[Tensor], Tensor], sets: int, n: int) -> tuple[float, float]:
    """The rate of rejection of calibrated classifiers, and its standard error.

    The draws of the test depend on the confidences and the seed alone, so many outcomes share them, as in `kce_p_value`.
    """
    rates = []
    for seed in range(sets):
        generator = torch.Generator().manual_seed(1_000_003 * n + seed)
        r = shape(torch.rand(n, generator=generator, dtype=torch.float64)).sort().values
        right = (torch.rand(_OUTCOMES, n, generator=generator, dtype=torch.float64) < r).double()
        found = p_values(Cells(r, right, 1 - right), torch.ones_like(r), _WIDTH, seed)
        if seed == 0:
            one = kce_p_value(torch.stack((r, 1 - r), -1), (right[0] == 0).long(), kernel_width=_WIDTH, seed=seed)
            assert abs(one - float(found[0])) < 1e-12, "the benchmark must measure what users call"
        rates.append(float((found <= _LEVEL + 1e-9).double().mean()))
    return statistics.mean(rates), statistics.stdev(rates) / math.sqrt(sets)


def _power(simulate: Simulation, runs: int, n: int) -> tuple[float, float]:
    rejected = 0
    for seed in range(runs):
        generator = torch.Generator().manual_seed(1_000_003 * n + seed)
        rejected += kce_p_value(*simulate(n, generator), kernel_width=_WIDTH, seed=seed, check=False) <= _LEVEL
    rate = rejected / runs
    return rate, math.sqrt(rate * (1 - rate) / runs)


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


_SHAPES: dict[str, Callable[[Tensor], Tensor]] = {
    "uniform, 0.5 to 1": lambda u: 0.5 + 0.5 * u,
    "near 1, mean 0.93": lambda u: 1 - 0.2 * u**2,
    "nearly certain, mean 0.99": lambda u: 1 - 0.02 * u,
    "0.6, 0.8 and 0.95 only": lambda u: _VALUES[(3 * u).long()],
}
_ALTERNATIVES: dict[str, Simulation] = {
    "4 classes, logits × 1.3": _scaled(1.3),
    "4 classes, logits × 1.3, flatter": _scaled(1.3, spread=1.0),
    "4 classes, logits × 0.77": _scaled(0.77),
    "± 10 points, right on average": _wavy,
}
