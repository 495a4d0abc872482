"""(g) How cost grows: with the examples and the classes of a batch, the samples R of a step and S of a prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

import calibayes as cb
from benchmarks.report import RATIOS, Report, ratios
from benchmarks.timing import interleaved, peak_memory
from benchmarks.training_step import NETWORKS, our_step

__all__ = ["WHAT", "section"]

WHAT = f"{RATIOS}, each to the first of its column"
_EXAMPLES = (1_000, 10_000, 100_000, 1_000_000)
_CLASSES = (2, 10, 100, 1_000)
_R = (1, 2, 4, 8, 16)
_S = (1, 5, 20, 80)
_MLP, _CNN, _ = NETWORKS


def section(report: Report) -> None:
    """Measure and tell."""
    _tell(report, "WMMCE of logits of 10 classes, forward and backward: examples n", {n: _term(n, 10) for n in _EXAMPLES})
    _tell(report, "WMMCE of logits of 10,000 examples: classes K", {k: _term(10_000, k) for k in _CLASSES})
    for network in (_MLP, _CNN):
        _tell(report, f"step of CA-BNN, {network}: samples R", {r: _step(network, r) for r in _R}, repeats=11)
    _tell(report, f"predict 1,024 inputs, {_MLP}: samples S", {s: _predict(s) for s in _S})
    memory = {s: _memory(s) / 1e6 for s in (_S[0], _S[-1])}
    report.record["peak memory of predict, MB"] = memory
    told = ", ".join(f"{value:.0f} MB for S = {s}" for s, value in memory.items())
    report.tell(f"    peak memory of 100,000 inputs: {told}")


def _tell(report: Report, title: str, runs: Mapping[int, Callable[[], object]], repeats: int = 21) -> None:
    timings = interleaved({f"{size:,}": run for size, run in runs.items()}, repeats=repeats)
    base = next(iter(timings.values()))
    report.record[title] = ratios(timings, base)
    report.tell(f"\n(g) {title}")
    for label, timing in timings.items():
        report.tell(f"    {label:>12}{timing.seconds * 1e3:14.3f} ms{timing.over(base):11.2f}x")


def _term(examples: int, classes: int) -> Callable[[], object]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(examples, classes, generator=generator).requires_grad_()
    targets = torch.randint(classes, (examples,), generator=generator)
    objective = cb.Objective(lam=1.0)

    def run() -> None:
        logits.grad = None
        objective.term(logits, targets).backward()

    return run


def _step(network: str, samples: int) -> Callable[[], object]:
    torch.manual_seed(0)
    net, x, classes = NETWORKS[network][0]()
    return our_step(cb.MeanField(net), x, torch.randint(classes, (len(x),)), samples, 10.0)


def _predict(samples: int) -> Callable[[], object]:
    torch.manual_seed(0)
    net, x, _ = NETWORKS[_MLP][0]()
    posterior, x = cb.MeanField(net), x.repeat(8, 1)
    return lambda: cb.predict(posterior, x, samples=samples)


def _memory(samples: int) -> int:
    setup = (
        "import torch, calibayes as cb\n"
        "from benchmarks.training_step import NETWORKS\n"
        f"net, x, _ = NETWORKS[{_MLP!r}][0]()\n"
        "posterior, x = cb.MeanField(net), torch.randn(100_000, 64)\n"
        "cb.predict(posterior, x[:512], samples=2)"
    )
    return peak_memory(setup, f"cb.predict(posterior, x, samples={samples})")
