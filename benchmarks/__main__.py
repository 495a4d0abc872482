"""Measure everything, print the table, and write it down with the machine and the versions."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import torch

import calibayes
from benchmarks import metrics, prediction, processes, quadratic_form, training_step
from benchmarks.timing import Timing

_RESULTS = Path(__file__).parents[1] / "results" / "benchmarks"
_MLP = next(iter(training_step.NETWORKS))


Tell = Callable[..., None]


def main() -> None:
    torch.set_num_threads(2)
    wanted = sys.argv[1:] or list(_SECTIONS)
    unknown = [name for name in wanted if name not in _SECTIONS]
    if unknown:
        sys.exit(f"Expected sections among {', '.join(_SECTIONS)}, but got {', '.join(unknown)}.")
    for name in wanted:
        _run(name)


def _run(name: str) -> None:
    lines: list[str] = []
    record: dict[str, object] = {"command": f"python -m benchmarks {name}", "machine": _machine()}

    def tell(line: str = "") -> None:
        print(line, flush=True)
        lines.append(line)

    tell("calibayes benchmark: median ratios of interleaved repeats in one run")
    tell(", ".join(f"{key} {value}" for key, value in _machine().items()))
    _SECTIONS[name](tell, record)
    _RESULTS.mkdir(parents=True, exist_ok=True)
    (_RESULTS / f"{name}.txt").write_text("\n".join(lines) + "\n")
    (_RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"\nWritten to {_RESULTS}/{name}.txt\n")


def _core(tell: Tell, record: dict[str, object]) -> None:
    tell("\n(a) training step, batch 128, Adam; ratio to the plain PyTorch step of the same network")
    for name in training_step.NETWORKS:
        timings = training_step.measure(name)
        base = timings["plain PyTorch"]
        record[f"step: {name}"] = _table(timings, base)
        tell(f"  {name}")
        for label, timing in timings.items():
            tell(f"    {label:<24} {timing.seconds * 1e3:9.3f} ms  {timing.over(base):6.2f}x{_goal(name, label)}")
        for label, value in training_step.pairs(timings):
            tell(f"    {label:<44} {value:6.1%}" if "share" in label else f"    {label:<44} {value:6.2f}x")
    tell("\n(b) quadratic form, forward and backward; ratio to torch.sort of r")
    for n in quadratic_form.SIZES:
        timings = quadratic_form.measure(n)
        base = timings["torch.sort"]
        record[f"quadratic form: n={n}"] = _table(timings, base)
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
        record[f"predict: {name}"] = _table(timings, base)
        tell(f"    {name:<32} {ours.seconds * 1e3:9.1f} ms  {ours.over(base):6.2f}x  (goal 1.05)")


def _metrics(tell: Tell, record: dict[str, object]) -> None:
    tell(f"\n(d) metrics of {metrics.N:,} predictions of 10 classes; ratio to torchmetrics' single ECE")
    timings = metrics.measure()
    base = timings["torchmetrics ECE"]
    record["metrics: n=1000000"] = _table(timings, base)
    for label, timing in timings.items():
        goal = "  (goal 30)" if label in ("evaluate, no intervals", "ECE, 1,000 replicates") else ""
        tell(f"    {label:<28} {timing.seconds * 1e3:9.1f} ms  {timing.over(base):6.2f}x{goal}")
    memory_of = metrics.megabytes()
    record["metrics: megabytes"] = memory_of
    for label, megabytes in memory_of.items():
        tell(f"    peak memory of {label:<28} {megabytes:6.0f} MB  (goal 1,000)")


def _processes(tell: Tell, record: dict[str, object]) -> None:
    tell("\n(e) a step of fit at the same batch of 128 in one and in two processes of one thread each (gloo, loopback)")
    tell("    bytes: what a process puts into messages in a step; gradients: the bytes of its own gradients")
    for name in training_step.NETWORKS:
        alone, both = (processes.measure(name, count) for count in (1, 2))
        record[f"processes: {name}"] = {"1": alone, "2": both}
        tell(f"  {name}")
        for scheme, found in both.items():
            seconds, before = found["seconds"], alone[scheme]["seconds"]
            tell(
                f"    {scheme:<8} {before * 1e3:8.2f} ms alone {seconds * 1e3:8.2f} ms in two ({before / seconds:.2f}x fast) "
                f"{found['messages']:3.0f} messages {found['bytes']:12,.0f} bytes ({found['gradient bytes']:12,.0f} gradients)"
            )


_SECTIONS = {"core": _core, "metrics": _metrics, "processes": _processes}


def _goal(name: str, label: str) -> str:
    if label == "MeanField R=1":
        return f"  (goal {1.6 if name == _MLP else 1.1})"
    return ""


def _table(timings: dict[str, Timing], base: Timing) -> dict[str, dict[str, float]]:
    return {label: {"seconds": timing.seconds, "ratio": timing.over(base)} for label, timing in timings.items()}


def _machine() -> dict[str, str]:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu = next((line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line), cpu)
    return {
        "cpu": cpu,
        "threads": str(torch.get_num_threads()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "calibayes": calibayes.__version__,
    }


if __name__ == "__main__":
    main()
