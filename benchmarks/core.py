"""(a) training step, (b) quadratic form and (c) prediction, each over its limit, with the goals beside them."""

from __future__ import annotations

from benchmarks import prediction, quadratic_form, training_step
from benchmarks.report import Report, ratios

__all__ = ["section"]

_MLP = next(iter(training_step.NETWORKS))


def section(report: Report) -> None:
    """Measure and tell."""
    tell, record = report.tell, report.record
    tell("\n(a) training step, batch 128, fused Adam; ratio to the plain PyTorch step of the same network")
    for name in training_step.NETWORKS:
        timings = training_step.measure(name)
        base = timings["plain PyTorch"]
        record[f"step: {name}"] = ratios(timings, base)
        tell(f"  {name}")
        for label, timing in timings.items():
            tell(f"    {label:<24} {timing.seconds * 1e3:9.3f} ms  {timing.over(base):6.2f}x{_goal(name, label)}")
        for label, value in training_step.pairs(timings):
            tell(f"    {label:<44} {value:6.1%}" if "share" in label else f"    {label:<44} {value:6.2f}x")
    tell("\n(b) quadratic form, forward and backward; ratio to torch.sort of r")
    for n in quadratic_form.SIZES:
        timings = quadratic_form.measure(n)
        base = timings["torch.sort"]
        record[f"quadratic form: n={n}"] = ratios(timings, base)
        goal = "  (goal 3)" if n == 1_000_000 else ""
        tell(f"  n = {n:,}")
        for label, timing in timings.items():
            shown = goal if label == "quadratic form" else ""
            tell(f"    {label:<24} {timing.seconds * 1e3:9.3f} ms  {timing.over(base):6.2f}x{shown}")
    memory = quadratic_form.bytes_per_example()
    record["quadratic form: bytes per example at n=10000000"] = memory
    tell(f"    peak memory at n = 10,000,000: {memory:.0f} bytes an example  (goal 200)")
    tell("\n(c) predict with S = 20; ratio to 20 plain forward passes")
    for name in training_step.NETWORKS:
        timings = prediction.measure(name)
        base, ours = timings["plain forward passes"], timings["predict"]
        record[f"predict: {name}"] = ratios(timings, base)
        tell(f"    {name:<32} {ours.seconds * 1e3:9.1f} ms  {ours.over(base):6.2f}x  (goal 1.05)")


def _goal(name: str, label: str) -> str:
    if label == "MeanField R=1":
        return f"  (goal {1.6 if name == _MLP else 1.1})"
    return ""
